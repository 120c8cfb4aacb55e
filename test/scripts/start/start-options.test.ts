import test from 'ava';
import { readApiOptions, readStartOptions } from '../../../scripts/start/start-options.ts';
import { ConfigError } from '../../../shared/platform/runtime/config-error.ts';

test('without options, one worker and one api process run', (t) => {
  t.deepEqual(readStartOptions([]), {
    workers: { min: 1, max: 1 },
    scaleUpAfterMs: 5_000,
    scaleDownAfterMs: 30_000,
    processes: 1,
  });
});

test('workers are a number or a range, times are in seconds', (t) => {
  t.deepEqual(readStartOptions(['--workers', '3']).workers, { min: 3, max: 3 });
  t.deepEqual(readStartOptions(['--workers=1..8', '--scale-up-after', '0.5', '--processes', '4']), {
    workers: { min: 1, max: 8 },
    scaleUpAfterMs: 500,
    scaleDownAfterMs: 30_000,
    processes: 4,
  });
  t.deepEqual(readApiOptions(['--processes', '2']), { processes: 2 });
});

for (const [args, message] of [
  [['--workers', '0'], /^--workers 0 is not valid: use a number such as 3, or a range such as 1\.\.8/],
  [['--workers', '8..1'], /^--workers 8\.\.1 is not valid/],
  [['--workers', '1..'], /^--workers 1\.\. is not valid/],
  [['--workers', '1..65'], /^--workers 1\.\.65 is not valid: .* between 1 and 64\.$/],
  [['--processes', '1.5'], /^--processes 1\.5 is not valid/],
  [['--scale-up-after', '0'], /^--scale-up-after 0 is not valid: use a number of seconds/],
  [['--scale-down-after', 'soon'], /^--scale-down-after soon is not valid/],
  [['--worker', '3'], /^Unknown option '--worker'\. Usage: npm start -- \[--workers 3 or 1\.\.8\]/],
  [['3'], /^Unexpected argument '3'\. /],
  [['--workers'], /^Option '--workers <value>' argument missing\. Usage/],
] as const) {
  test(`${args.join(' ')} is refused in one line that says what to use`, (t) => {
    const error = t.throws(() => readStartOptions(args), { instanceOf: ConfigError, message });
    t.false(error?.message.includes('\n'));
  });
}
