import { randomUUID } from 'node:crypto';

const PREFIX = 'call_gw_';

/** For a call that Gemini gave no id. Clients name their answers by it; Gemini is never told of it. */
export function createToolCallId(): string {
  return `${PREFIX}${randomUUID().replaceAll('-', '')}`;
}

/** Whether an id was made here: Gemini, which did not give it, must not get it back. */
export function isOwnToolCallId(id: string): boolean {
  return id.startsWith(PREFIX);
}
