import type { Workload } from './estimate-cost.ts';

/** The numbers of the calculator, by their names in the address. */
export const workloadFields = ['in', 'cached', 'out', 'day'] as const;
export type WorkloadField = (typeof workloadFields)[number];

const defaults: Readonly<Record<WorkloadField, string>> = {
  in: '1000',
  cached: '0',
  out: '300',
  day: '1000',
};
const maxDigits = 9;

/** What a field shows: digits, or nothing. */
export const readDigits = (text: string): string => text.replaceAll(/\D/g, '').slice(0, maxDigits);

/** The numbers of the address as they were typed. */
export const readField = (filters: URLSearchParams, field: WorkloadField): string =>
  readDigits(filters.get(field) ?? defaults[field]);

export function readWorkload(filters: URLSearchParams): Workload {
  const number = (field: WorkloadField): number => Number(readField(filters, field));
  const input = number('in');
  return {
    input,
    cached: Math.min(number('cached'), input),
    output: number('out'),
    requestsPerDay: number('day'),
  };
}
