import type { FairBudget } from '../fairness/fair-budget.ts';
import type { ProcessMetrics } from '../platform/metrics/process-metrics.ts';

/** Shows how much of each memory budget is in use, in bytes, and how many requests wait for memory. */
export function watchBudgets(metrics: ProcessMetrics, budgets: Readonly<Record<string, FairBudget>>): void {
  const show = (name: string, help: string, read: (budget: FairBudget) => number): void => {
    const gauge = metrics.gauge(
      {
        name,
        help,
        collect: () => {
          for (const [budget, one] of Object.entries(budgets)) gauge.set({ budget }, read(one));
        },
      },
      ['budget'],
    );
  };
  show('memory_budget_bytes', 'How large a memory budget is.', ({ capacity }) => capacity);
  show('memory_budget_held_bytes', 'How much of it is in use.', ({ held }) => held);
  show('memory_budget_waiting', 'Requests that wait for memory of it.', ({ waiting }) => waiting);
}
