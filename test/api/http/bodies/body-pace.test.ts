import test from 'ava';
import { BodyPace } from '../../../../api/http/bodies/body-pace.ts';
import type { AppError } from '../../../../shared/contract/errors.ts';

const graceMs = 100;
const busyMs = 200;

test.serial(
  'most of the time during which this process is busy does not count against a large body',
  async (t) => {
    const startedAtMs = performance.now();
    const failure = new Promise<AppError>((resolve) => {
      const pace = new BodyPace(() => true, { smallMs: 60_000, stallMs: 60_000, graceMs }, resolve);
      t.teardown(() => pace.stop());
    });
    while (performance.now() - startedAtMs < busyMs) {
      // The bytes of a body wait meanwhile.
    }
    const error = await failure;
    t.is(error.status, 408);
    // A timer may fire a millisecond early.
    t.true(performance.now() - startedAtMs >= graceMs + busyMs * 0.75 - 2);
  },
);
