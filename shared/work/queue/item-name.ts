import type { StoredJob } from './job-kinds.ts';

/** Names an item of a BullMQ queue: its model and, if there are several, how many requests it serves. */
export function nameItem(requests: StoredJob['requests']): string {
  const [{ model }] = requests;
  return requests.length === 1 ? model : `${model} *${requests.length}`;
}

export function parseItemName(name: string): { readonly model: string; readonly requests: number } {
  const [, model = name, count = '1'] = /^(.*) \*(\d+)$/.exec(name) ?? [];
  return { model, requests: Number(count) };
}
