import test from 'ava';
import { hashSecret } from '../../../shared/accounts/credentials.ts';
import { createTokenSecret } from '../../../shared/admin/admin-scope.ts';
import type { AdminTokenDocument } from '../../../shared/admin/admin-token-store.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { createLogger } from '../../../shared/platform/runtime/logger.ts';
import { TokenRegistry } from '../../../api/admin/token-registry.ts';

const log = createLogger('test', 'silent');

/** A store of tokens that a test can change and switch off. */
function createStore() {
  const tokens = new Map<string, AdminTokenDocument>();
  const state = { reads: 0, isDown: false };
  return {
    state,
    add(name: string): string {
      const secret = createTokenSecret();
      tokens.set(name, {
        _id: name,
        scope: 'read',
        secretHash: hashSecret(secret),
        createdAt: new Date(),
        revokedAt: null,
      });
      return secret;
    },
    remove: (name: string) => tokens.delete(name),
    listLive: async (): Promise<AdminTokenDocument[]> => {
      state.reads += 1;
      if (state.isDown) throw new AppError('service_unavailable');
      return [...tokens.values()];
    },
  };
}

test('a token is found without a read for each call, and not after it was revoked', async (t) => {
  const store = createStore();
  const secret = store.add('one');
  const registry = new TokenRegistry(store, log);
  for (let i = 0; i < 100; i++) t.is((await registry.find(secret))?._id, 'one');
  t.is(await registry.find(createTokenSecret()), null);
  t.is(await registry.find('wrong'), null);
  t.is(store.state.reads, 1);
  store.remove('one');
  registry.invalidate();
  t.is(await registry.find(secret), null);
  t.false(await registry.hasAny());
  t.is(store.state.reads, 2);
});

test('while MongoDB does not respond, known tokens go on, but not after a change was announced', async (t) => {
  const store = createStore();
  const secret = store.add('one');
  const registry = new TokenRegistry(store, log);
  t.truthy(await registry.find(secret));
  store.state.isDown = true;
  t.truthy(await registry.find(secret));
  registry.invalidate();
  await t.throwsAsync(registry.find(secret), { instanceOf: AppError, code: 'service_unavailable' });
  const { reads } = store.state;
  for (let i = 0; i < 10; i++) await t.throwsAsync(registry.find(secret), { instanceOf: AppError });
  t.is(store.state.reads, reads, 'a failed read is not repeated by every call');
});

test('a change that is announced during a read is not lost', async (t) => {
  const store = createStore();
  const secret = store.add('one');
  let announce = (): void => undefined;
  const registry = new TokenRegistry(
    {
      listLive: async () => {
        const found = await store.listLive();
        announce();
        return found;
      },
    },
    log,
  );
  announce = () => {
    announce = () => undefined;
    store.remove('one');
    registry.invalidate();
  };
  t.truthy(await registry.find(secret), 'the read began before the change');
  t.is(await registry.find(secret), null);
});
