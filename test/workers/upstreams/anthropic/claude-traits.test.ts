import test from 'ava';

import {
  type ClaudeTraits,
  readClaudeTraits,
} from '../../../../workers/upstreams/anthropic/claude-traits.ts';

/** Thinking, how it is turned off, sampling, prefill, and the flags `xhigh`, `unasked` and `binds`. */
type Row = [
  ClaudeTraits['thinking'],
  ClaudeTraits['thinkingOff'],
  ClaudeTraits['sampling'],
  'prefill' | 'no prefill',
  string,
];

const table: Record<string, Row> = {
  'claude-2.1': [null, 'unasked', 'both', 'prefill', ''],
  'claude-instant-1.2': [null, 'unasked', 'both', 'prefill', ''],
  'claude-3-opus-20240229': [null, 'unasked', 'both', 'prefill', ''],
  'claude-3-5-sonnet-20241022': [null, 'unasked', 'both', 'prefill', ''],
  'claude-3-7-sonnet-latest': ['budget', 'unasked', 'both', 'prefill', ''],
  'claude-sonnet-4-20250514': ['budget', 'unasked', 'one', 'prefill', ''],
  'claude-4-opus-20250514': ['budget', 'unasked', 'one', 'prefill', ''],
  'claude-opus-4-1-20250805': ['budget', 'unasked', 'one', 'prefill', ''],
  'claude-haiku-4-5-20251001': ['budget', 'unasked', 'one', 'prefill', ''],
  'claude-sonnet-4-5': ['budget', 'unasked', 'one', 'prefill', ''],
  'claude-opus-4-6': ['effort', 'unasked', 'one', 'no prefill', ''],
  'us.anthropic.claude-sonnet-4-6-v1:0': ['effort', 'unasked', 'one', 'no prefill', ''],
  'anthropic/claude-opus-4.7': ['effort', 'unasked', 'none', 'no prefill', 'xhigh'],
  'claude-opus-4-8@20260528': ['effort', 'unasked', 'none', 'no prefill', 'xhigh'],
  'claude-opus-5': ['effort', 'disabled', 'none', 'no prefill', 'xhigh unasked'],
  'claude-sonnet-5': ['effort', 'disabled', 'none', 'no prefill', 'xhigh unasked'],
  'claude-fable-5': ['effort', 'never', 'none', 'no prefill', 'xhigh unasked'],
  'claude-fable-5-1': ['effort', 'never', 'none', 'no prefill', 'xhigh unasked binds'],
  'claude-opus-5-5': ['effort', 'never', 'none', 'no prefill', 'xhigh unasked binds'],
  'claude-sonnet-5-5': ['effort', 'between_tools', 'none', 'no prefill', 'xhigh unasked binds'],
  'claude-haiku-5-5': ['effort', 'disabled', 'none', 'no prefill', 'xhigh unasked binds'],
  'claude-opus-6': ['effort', 'never', 'none', 'no prefill', 'xhigh unasked binds'],
  // Unknown names are treated as the newest models, but think only if the caller requests it.
  'claude-saga-1': ['effort', 'never', 'none', 'no prefill', 'xhigh'],
  'claude-mythos-preview': ['effort', 'never', 'none', 'no prefill', 'xhigh'],
  'opus-latest': ['effort', 'never', 'none', 'no prefill', 'xhigh'],
  'kimi-k2': ['effort', 'never', 'none', 'no prefill', 'xhigh'],
};

test('the name of a model determines what it supports, in all spellings of the name', (t) => {
  for (const [model, row] of Object.entries(table)) {
    const traits = readClaudeTraits(model, null);
    const more = [
      traits.hasXhigh ? 'xhigh' : null,
      traits.thinksByDefault ? 'unasked' : null,
      traits.bindsThinking ? 'binds' : null,
    ];
    t.deepEqual(
      [
        traits.thinking,
        traits.thinkingOff,
        traits.sampling,
        traits.supportsPrefill ? 'prefill' : 'no prefill',
        more.filter((word) => word !== null).join(' '),
      ],
      row,
      model,
    );
  }
});

test('a name without a version is treated as an older model if its route specifies a budget', (t) => {
  t.like(readClaudeTraits('kimi-k2', 'budget'), {
    sampling: 'both',
    thinking: 'budget',
    supportsPrefill: true,
  });
  t.is(readClaudeTraits('claude-opus-5', 'budget').sampling, 'none');
});
