import { lookUp } from '../json-value.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { UpstreamTarget } from '../upstream.ts';
import { readTraits, type ThinkingLevel } from './gemini-traits.ts';

/**
 * Tokens for each effort. Google's own OpenAI format uses 1024, 8192 and 24576 for low, medium and high; 512 is
 * the minimum that every model of generation 2.5 accepts.
 */
const BUDGETS: Readonly<Record<string, number>> = { minimal: 512, low: 1024, medium: 8192, high: 24_576 };
const LEVELS: Readonly<Record<string, ThinkingLevel>> = {
  minimal: 'MINIMAL',
  low: 'LOW',
  medium: 'MEDIUM',
  high: 'HIGH',
  xhigh: 'HIGH',
};
const ORDER: readonly ThinkingLevel[] = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'];

/**
 * Builds `thinkingConfig` for one of OpenAI's efforts; null if the model cannot think. It is a budget or a
 * level, never both, which the vendor rejects. `none` asks for as little as the model allows, and for no
 * thoughts in the response. An effort unknown to OpenAI leaves the amount to the model.
 */
export function toThinkingConfig(target: UpstreamTarget, effort: string): JsonRecord | null {
  const traits = readTraits(target.model);
  const how = target.thinking ?? traits.thinking;
  if (how === null) {
    return null;
  }
  if (effort === 'none') {
    // The vendor rejects a request for thoughts from a model that is told not to think.
    return how === 'budget' ? { thinkingBudget: traits.leastBudget } : { thinkingLevel: traits.levels[0] };
  }
  if (how === 'budget') {
    const budget = effort === 'xhigh' ? traits.mostBudget : lookUp(BUDGETS, effort);
    return { includeThoughts: true, ...(budget === undefined ? {} : { thinkingBudget: budget }) };
  }
  const level = lookUp(LEVELS, effort);
  return {
    includeThoughts: true,
    ...(level === undefined ? {} : { thinkingLevel: chooseLevel(level, traits.levels) }),
  };
}

/** Returns the level itself, or the next higher one that the model supports. */
function chooseLevel(wanted: ThinkingLevel, known: readonly ThinkingLevel[]): ThinkingLevel {
  return known.find((level) => ORDER.indexOf(level) >= ORDER.indexOf(wanted)) ?? 'HIGH';
}
