import { randomUUID } from 'node:crypto';

const PREFIX = 'call_gw_';

/**
 * Creates an ID for a call that Gemini sent without an ID. Clients refer to it in tool results; it is never sent to
 * Gemini.
 */
export function createToolCallId(): string {
  return `${PREFIX}${randomUUID().replaceAll('-', '')}`;
}

/** Whether an ID was created by `createToolCallId`. Gemini did not assign it, so it must not be sent back. */
export function isGatewayToolCallId(id: string): boolean {
  return id.startsWith(PREFIX);
}
