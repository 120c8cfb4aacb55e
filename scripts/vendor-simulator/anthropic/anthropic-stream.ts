import { type AnthropicPlan, renderHead, renderPromptUsage, renderUsage } from './anthropic-response.ts';
import type { SimulatedResponse } from '../dialect.ts';
import type { Faults } from '../faults.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';

const ERROR_EVENT = toEvent('error', { error: { type: 'overloaded_error', message: 'Overloaded' } });

export function renderStream(plan: AnthropicPlan, faults: Faults): SimulatedResponse {
  return {
    kind: 'stream',
    contentType: 'text/event-stream; charset=utf-8',
    chunks: buildEvents(plan, faults),
    errorChunk: ERROR_EVENT,
  };
}

function buildEvents(plan: AnthropicPlan, faults: Faults): readonly string[] {
  const events: string[] = [];
  const usage = planUsage(plan, faults.usage);
  const addOnce = (type: string, fields: object): void => {
    // The vendor's JSON has trailing spaces, which a parser must accept.
    events.push(toEvent(type, fields, ' '.repeat((events.length % 4) * 3)));
  };
  const add = (type: string, fields: object): void => {
    addOnce(type, fields);
    if (faults.duplicates === true) {
      addOnce(type, fields);
    }
  };

  const message = {
    ...renderHead(plan),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    ...usage.start,
  };
  add('message_start', { message });
  if (plan.blocks.length === 0) {
    addOnce('ping', {});
  }
  for (const [index, block] of plan.blocks.entries()) {
    add('content_block_start', { index, content_block: block.start });
    if (index === 0) {
      addOnce('ping', {});
    }
    for (const delta of block.deltas) {
      addOnce('content_block_delta', { index, delta });
    }
    add('content_block_stop', { index });
  }
  if (faults.noEnd !== 'finish' && faults.noEnd !== 'both') {
    add('message_delta', { delta: { stop_reason: plan.stop, stop_sequence: null }, ...usage.end });
  }
  if (faults.noEnd !== 'mark' && faults.noEnd !== 'both') {
    add('message_stop', {});
  }
  return events;
}

interface UsageByEvent {
  readonly start: { readonly usage?: JsonRecord };
  readonly end: { readonly usage?: JsonRecord };
}

/**
 * Returns the usage in `message_start` and in `message_delta`. The start reports the input and a first token. The end
 * reports all totals again, so the two must not be added up.
 */
function planUsage({ usage }: AnthropicPlan, fault: Faults['usage']): UsageByEvent {
  const all = { usage: renderUsage(usage) };
  const start = { usage: { ...renderPromptUsage(usage, 0), output_tokens: 1 } };
  switch (fault) {
    case 'missing':
      return { start: {}, end: {} };
    case 'first':
      return { start: all, end: {} };
    case 'finish':
      return { start: {}, end: all };
    case 'every':
      return { start: all, end: all };
    case 'output':
      return { start, end: { usage: { output_tokens: usage.completionTokens } } };
    default:
      return { start, end: all };
  }
}

function toEvent(type: string, fields: object, padding = ''): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}${padding}\n\n`;
}
