import { randomUUID } from 'node:crypto';
import test from 'ava';
import { limitChanges } from '../../../../api/account-area/steps/limit-changes.ts';
import type { ApiContext } from '../../../../api/http/request/context.ts';
import type { Services } from '../../../../api/services.ts';
import { Limits, webLimits } from '../../../../api/account-area/limits.ts';
import { useRedis } from '../../../support/use-redis.ts';

const redis = useRedis(test);

for (const name of ['changes-user', 'daily-changes-user'] as const) {
  test(`a change beyond the limit ${name} is rejected in every session of the user`, async (t) => {
    const limits = new Limits(redis(), 'test master key');
    const limit = limitChanges({ web: { limits } } as unknown as Services);
    const userId = randomUUID();
    let changes = 0;
    const change = async (who = userId): Promise<void> => {
      const context = { state: { session: { _id: randomUUID(), userId: who } } } as ApiContext;
      await limit(context, () => Promise.resolve(void (changes += 1)));
    };
    const counted = Array.from({ length: webLimits[name].limit - 1 }, () =>
      limits.count([{ name, who: userId }]),
    );
    await Promise.all(counted);
    await change();
    await t.throwsAsync(change(), { code: 'too_many_attempts' });
    await change(randomUUID());
    t.is(changes, 2);
  });
}
