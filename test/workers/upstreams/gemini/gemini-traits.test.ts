import test from 'ava';

import { readTraits } from '../../../../workers/upstreams/gemini/gemini-traits.ts';

const all = ['MINIMAL', 'LOW', 'MEDIUM', 'HIGH'];

/** Name, how thinking is requested, levels, minimum budget, whether it requires signatures, whether it makes images. */
const TABLE = [
  ['gemini-1.5-pro', null, ['LOW', 'MEDIUM', 'HIGH'], 128, false, false],
  ['gemini-2.0-flash', null, all, 0, false, false],
  ['gemini-2.0-flash-preview-image-generation', null, all, 0, false, true],
  ['gemini-2.5-flash', 'budget', all, 0, false, false],
  ['gemini-2.5-flash-lite', 'budget', all, 0, false, false],
  ['gemini-2.5-pro', 'budget', ['LOW', 'MEDIUM', 'HIGH'], 128, false, false],
  ['gemini-2.5-flash-image', null, all, 0, false, true],
  ['gemini-2.5-flash-preview-tts', null, all, 0, false, false],
  ['gemini-3-pro-preview', 'effort', ['LOW', 'HIGH'], 128, true, false],
  ['gemini-3-pro-image', 'effort', ['LOW', 'HIGH'], 128, true, true],
  ['gemini-3-flash-preview', 'effort', all, 0, true, false],
  ['gemini-3.1-pro-preview', 'effort', ['LOW', 'MEDIUM', 'HIGH'], 128, true, false],
  ['gemini-3.1-flash-lite', 'effort', all, 0, true, false],
  ['gemini-4-flash', 'effort', all, 0, true, false],
  ['gemini-10.5-flash', 'effort', all, 0, true, false],
  ['gemini-flash-latest', 'effort', all, 0, true, false],
  ['gemini-pro-latest', 'effort', ['LOW', 'MEDIUM', 'HIGH'], 128, true, false],
  ['models/gemini-2.5-pro', 'budget', ['LOW', 'MEDIUM', 'HIGH'], 128, false, false],
  ['google/Gemini-3-Flash', 'effort', all, 0, true, false],
  ['tunedModels/my-own', 'effort', all, 0, false, false],
  ['gemini-robotics-er-1.5-preview', 'effort', all, 0, false, false],
] as const;

test('the name of a model determines how it thinks, whether it requires signatures and whether it makes images', (t) => {
  for (const [name, thinking, levels, minBudget, requiresSignatures, generatesImages] of TABLE) {
    const traits = readTraits(name);
    t.like(traits, { thinking, minBudget, requiresSignatures, generatesImages }, name);
    t.deepEqual([...traits.levels], [...levels], name);
    t.is(traits.maxBudget, minBudget === 128 ? 32_768 : 24_576, name);
  }
});
