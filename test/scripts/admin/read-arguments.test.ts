import test from 'ava';
import { UsageError } from '../../../scripts/admin/command.ts';
import { readArguments } from '../../../scripts/admin/read-arguments.ts';

const ban = { usage: '<user> --reason "…"', positionals: 1, options: ['reason'], flags: ['rotate'] };
const credit = { usage: '<account> [--balance 5]', positionals: 1, options: ['balance'] };
const list = { usage: '', positionals: 0, options: [] };

test('options and flags may come before or after the argument, and a value may be a negative number', (t) => {
  t.deepEqual(readArguments(['--json', 'ann', '--reason=a b', '--rotate'], 'user ban', ban), {
    positionals: ['ann'],
    options: { reason: 'a b' },
    flags: new Set(['rotate']),
    json: true,
  });
  t.deepEqual(readArguments(['--balance', '-5', 'x'], 'account credit', credit).options, { balance: '-5' });
  t.deepEqual(readArguments([], 'user list', list).positionals, []);
});

const mistakes: [string, string[], typeof ban | typeof list, string][] = [
  ['too many arguments', ['a', 'b'], ban, '"user ban" takes one argument, <user>; 2 were given.'],
  ['no argument', ['--reason', 'x'], ban, '"user ban" takes one argument, <user>; none was given.'],
  ['an argument for a verb that takes none', ['a'], list, '"user ban" takes no argument; one was given.'],
  [
    'an option without its value at the end',
    ['a', '--reason'],
    ban,
    '--reason needs a value, in "user ban".',
  ],
  [
    'an option without its value before another option',
    ['a', '--reason', '--json'],
    ban,
    '--reason needs a value, in "user ban".',
  ],
  ['a flag with a value', ['a', '--json=1'], ban, '--json takes no value, in "user ban".'],
  ['an unknown option', ['a', '--reasn', 'x'], ban, 'Unknown option "--reasn", in "user ban".'],
  [
    'an option that every object inherits',
    ['a', '--__proto__', 'x'],
    ban,
    'Unknown option "--__proto__", in "user ban".',
  ],
];
for (const [title, args, verb, message] of mistakes)
  test(`${title}: the error says what is wrong, and where`, (t) => {
    t.throws(() => readArguments(args, 'user ban', verb), { instanceOf: UsageError, message });
  });
