import test from 'ava';

import { toThinkingConfig } from '../../../../workers/upstreams/gemini/to-thinking.ts';
import { createTarget } from '../../../support/upstream-target.ts';

const think = (model: string, effort: string, thinking: 'budget' | 'effort' | null = null): unknown =>
  toThinkingConfig(createTarget(model, { thinking }), effort);

test('models of generation 2.5 get a budget within their limits', (t) => {
  const budgets = { minimal: 512, low: 1024, medium: 8192, high: 24_576, xhigh: 24_576 };
  for (const [effort, thinkingBudget] of Object.entries(budgets)) {
    t.deepEqual(think('gemini-2.5-flash', effort), { includeThoughts: true, thinkingBudget });
  }
  t.deepEqual(think('gemini-2.5-pro', 'xhigh'), { includeThoughts: true, thinkingBudget: 32_768 });
});

test('later generations get a level that they support: the requested one or the next higher', (t) => {
  const levels = { minimal: 'MINIMAL', low: 'LOW', medium: 'MEDIUM', high: 'HIGH', xhigh: 'HIGH' };
  for (const [effort, thinkingLevel] of Object.entries(levels)) {
    t.deepEqual(think('gemini-3-flash-preview', effort), { includeThoughts: true, thinkingLevel });
  }
  t.like(think('gemini-3.1-pro-preview', 'minimal'), { thinkingLevel: 'LOW' });
  t.like(think('gemini-3-pro-preview', 'medium'), { thinkingLevel: 'HIGH' });
});

test('effort none is sent as the minimum of the model, and requests no thoughts', (t) => {
  t.deepEqual(think('gemini-2.5-flash', 'none'), { thinkingBudget: 0 });
  t.deepEqual(think('gemini-2.5-pro', 'none'), { thinkingBudget: 128 });
  t.deepEqual(think('gemini-3-flash', 'none'), { thinkingLevel: 'MINIMAL' });
  t.deepEqual(think('gemini-3-pro', 'none'), { thinkingLevel: 'LOW' });
});

test('the thinking setting of the route takes precedence over the model name', (t) => {
  t.deepEqual(think('tunedModels/a', 'low', 'budget'), { includeThoughts: true, thinkingBudget: 1024 });
  t.deepEqual(think('gemini-2.5-flash', 'low', 'effort'), { includeThoughts: true, thinkingLevel: 'LOW' });
});

test('a model that cannot think gets no thinking config; with an unknown effort the model decides how much to think', (t) => {
  t.is(think('gemini-2.0-flash', 'high'), null);
  for (const model of ['gemini-2.5-flash', 'gemini-3-flash']) {
    t.deepEqual(think(model, 'enormous'), { includeThoughts: true });
  }
});
