// A process whose metrics a test reads: `node group-member.js <requests>`.
import { answerQuestions } from '../../../shared/platform/child-processes/process-questions.ts';
import { ProcessMetrics } from '../../../shared/platform/metrics/process-metrics.ts';

const requests = Number(process.argv[2]);
const metrics = new ProcessMetrics({ role: 'worker' });
const total = metrics.counter({ name: 'requests_total', help: 'Requests.' }, ['model']);
total.inc({ model: 'chat' }, requests);
const duration = metrics.histogram({ name: 'request_duration_seconds', help: 'Time.', buckets: [1, 2] }, []);
for (let i = 0; i < requests; i++) duration.observe(i);
metrics.gauge({ name: 'memory_budget_held_bytes', help: 'Memory.' }, []).set(requests);
metrics.gauge({ name: 'queue_waiting', help: 'Of the store.', aggregator: 'first' }, []).set(5);
// One that has counted nothing has not looked yet.
metrics
  .gauge({ name: 'ledger_lag_seconds', help: 'Of the store.', aggregator: 'first' }, [])
  .set(requests === 0 ? NaN : 7);
answerQuestions(process, { metrics: () => metrics.readJson() });
process.on('disconnect', () => process.exit());
