import { lookUp } from '../json-value.ts';
import type { JsonRecord } from '../../../shared/encoding/json-record.ts';
import type { UpstreamTarget } from '../upstream.ts';
import { readTraits, type ThinkingLevel } from './gemini-traits.ts';

/**
 * Tokens for each effort. Google's OpenAI-compatible format uses 1024, 8192 and 24576 for low, medium and high; 512
 * is the minimum that every model of generation 2.5 accepts.
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
 * Builds `thinkingConfig` for one of OpenAI's efforts; null if the model cannot think. It contains a budget or a level,
 * never both, because the vendor rejects that. `none` requests the minimum that the model allows, and no thoughts in the
 * response. For an unknown effort, the model chooses the amount.
 */
export function toThinkingConfig(target: UpstreamTarget, effort: string): JsonRecord | null {
  const traits = readTraits(target.model);
  const style = target.thinking ?? traits.thinking;
  if (style === null) {
    return null;
  }
  if (effort === 'none') {
    // The vendor rejects a request that includes thoughts but turns thinking off.
    return style === 'budget' ? { thinkingBudget: traits.minBudget } : { thinkingLevel: traits.levels[0] };
  }
  if (style === 'budget') {
    const budget = effort === 'xhigh' ? traits.maxBudget : lookUp(BUDGETS, effort);
    return { includeThoughts: true, ...(budget === undefined ? {} : { thinkingBudget: budget }) };
  }
  const level = lookUp(LEVELS, effort);
  return {
    includeThoughts: true,
    ...(level === undefined ? {} : { thinkingLevel: chooseLevel(level, traits.levels) }),
  };
}

/** Returns the level itself, or the next higher one that the model supports. */
function chooseLevel(requested: ThinkingLevel, known: readonly ThinkingLevel[]): ThinkingLevel {
  return known.find((level) => ORDER.indexOf(level) >= ORDER.indexOf(requested)) ?? 'HIGH';
}
