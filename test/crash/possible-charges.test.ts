import { waitUntilReady } from '../../shared/platform/redis/redis-client.ts';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { findRow, waitForNoReservation } from '../support/observe.ts';
import { testWithOwnStore } from '../support/own-stores.ts';
import { useStack } from '../support/stack.ts';
import { vendorCatalog } from '../support/vendor-catalog.ts';
import { waitFor } from '../support/wait-for.ts';

/** A caller that gets an error for a request that may have been charged is told so, and how to find out. */

const charge = 'You may have been charged for output that was generated.';
const question = { model: 'slow-chat', messages: [{ role: 'user', content: 'one two three' }] };

const messageOf = async (response: Response): Promise<string> =>
  ((await response.json()) as { error: { message: string } }).error.message;

testWithOwnStore('Redis')(
  'if Redis dies during a chat, the 503 says that the chat may have been charged and under which id, and one that was never admitted does not',
  async (t) => {
    const vendor = await startVendorSimulator();
    t.teardown(() => vendor.close());
    const stack = await useStack(t, { catalog: vendorCatalog(vendor.url), durableRedis: true });
    const account = await stack.createAccount();
    const pending = stack.post('/v1/chat/completions', account.apiKey, question);
    await vendor.requests.waitFor(() => true);
    await stack.killRedis();
    const lost = await pending;
    t.is(lost.status, 503);
    t.is(lost.headers.get('x-should-retry'), 'false');
    const id = lost.headers.get('x-request-id')!;
    const message = await messageOf(lost);
    t.true(
      message.includes(`${charge} Before you send the request again, look up its x-request-id, ${id},`),
      message,
    );
    const refused = await stack.post('/v1/chat/completions', account.apiKey, question);
    t.is(refused.status, 503);
    t.is(refused.headers.get('x-should-retry'), null);
    t.false((await messageOf(refused)).includes(charge));
    await stack.restartRedis();
    await waitUntilReady(stack.redis);
    await waitForNoReservation(stack, account.id);
    t.is((await findRow(stack, id))._id, id);
  },
);

testWithOwnStore('Redis')(
  'if Redis dies during a chat with an Idempotency-Key, the 503 says to send it again, and that returns the response for one charge',
  async (t) => {
    const vendor = await startVendorSimulator();
    t.teardown(() => vendor.close());
    const stack = await useStack(t, { catalog: vendorCatalog(vendor.url), durableRedis: true });
    const account = await stack.createAccount();
    const ask = () =>
      stack.post('/v1/chat/completions', account.apiKey, question, { 'idempotency-key': 'the one' });
    const pending = ask();
    await vendor.requests.waitFor(() => true);
    await stack.killRedis();
    const lost = await pending;
    t.is(lost.status, 503);
    t.is(lost.headers.get('x-should-retry'), null);
    t.true(
      (await messageOf(lost)).includes(`${charge} Send the request again with the same Idempotency-Key`),
    );
    await stack.restartRedis();
    await waitUntilReady(stack.redis);
    const response = await waitFor('all connections of the api to be back', async () => {
      const again = await ask();
      return again.status !== 503 && again;
    });
    t.is(response.status, 200);
    t.is(response.headers.get('x-request-id'), lost.headers.get('x-request-id'));
    await response.text();
    await waitForNoReservation(stack, account.id);
    t.is(vendor.requests.entries.length, 1);
  },
);
