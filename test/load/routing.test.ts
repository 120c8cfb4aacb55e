import test, { type ExecutionContext } from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import type { VendorSimulatorOptions } from '../../scripts/vendor-simulator/simulator.ts';
import { readAdmin, runAdmin } from '../support/admin.ts';
import { useStack, type TestStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';

/** Failing vendors as callers see them: through HTTP, with two workers. */

const workers = [
  { queues: ['chat', 'image', 'embedding'], concurrency: 256 },
  { queues: ['chat', 'image', 'embedding'], concurrency: 256 },
] as const;
const common = 'type: chat, context: 8192, pricing: { prompt: 7, completion: 13 }';

async function startRig(
  t: ExecutionContext,
  catalogOf: (vendorUrl: string) => string,
  options: VendorSimulatorOptions = {},
): Promise<{ stack: TestStack; vendor: VendorSimulator }> {
  const vendor = await startVendorSimulator({ ...options, logCapacity: 5_000 });
  t.teardown(() => vendor.close());
  const stack = await useStack(t, { catalog: catalogOf(`${vendor.url}/v1`), workers });
  return { stack, vendor };
}

interface SentResult {
  readonly status: number;
  readonly ms: number;
  readonly code: string | null;
}

async function send(stack: TestStack, apiKey: string, model: string, text = 'hello'): Promise<SentResult> {
  const startedAt = performance.now();
  const response = await stack.post('/v1/chat/completions', apiKey, {
    model,
    messages: [{ role: 'user', content: text }],
  });
  const body = (await response.json()) as { error?: { code: string } };
  return { status: response.status, ms: performance.now() - startedAt, code: body.error?.code ?? null };
}

async function sendMany(
  times: number,
  concurrency: number,
  one: () => Promise<SentResult>,
): Promise<SentResult[]> {
  const all: SentResult[] = [];
  let remaining = times;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (remaining > 0) {
        remaining -= 1;
        all.push(await one());
      }
    }),
  );
  return all;
}

const callsOf = (vendor: VendorSimulator, model: string): number =>
  vendor.requests.entries.filter((entry) => entry.model === model).length;

for (const percent of [50, 40]) {
  test.serial(
    `if one route fails ${percent} % of its calls and another is slow, none of 600 callers sees a failure`,
    async (t) => {
      const slowMs = 60;
      const { stack, vendor } = await startRig(
        t,
        (url) => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}", maxConcurrency: 64 } }
models:
  - id: chat
    type: chat
    context: 8192
    pricing: { prompt: 7, completion: 13 }
    routes: [{ upstream: vendor, model: gpt+flaky-${percent} }, { upstream: vendor, model: gpt+slow-${slowMs} }]
`,
      );
      const { apiKey } = await stack.createAccount({ balance: '1000' });
      const all = await sendMany(600, 16, () => send(stack, apiKey, 'chat'));
      t.deepEqual(
        all.filter(({ status }) => status !== 200),
        [],
      );
      // A breaker opens when half of the calls fail, so a route with 50 % failures is rarely called. A route with 40 %
      // stays in use.
      const flakyCalls = callsOf(vendor, `gpt+flaky-${percent}`);
      t.true(flakyCalls > (percent < 50 ? 150 : 5), `${flakyCalls} calls on the failing route`);
      const sorted = all.map(({ ms }) => ms).toSorted((x, y) => x - y);
      const [p50, p99] = [0.5, 0.99].map((part) => sorted[Math.floor(sorted.length * part)]!.toFixed(0));
      t.log(`${flakyCalls} calls on the failing route; p50 ${p50} ms, p99 ${p99} ms`);
      // No vendor is called again once there is a response.
      t.is(vendor.requests.entries.filter(({ status }) => status === 200).length, 600);
    },
  );
}

test.serial(
  'all workers stop calling a dead route within a second after its breaker opens, and use it again once it recovers',
  async (t) => {
    const { stack, vendor } = await startRig(
      t,
      (url) => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}" } }
models:
  - { id: lonely, ${common}, routes: [{ upstream: vendor, model: lonely }] }
  - { id: chat, ${common}, routes: [{ upstream: vendor, model: dying, weight: 1000 }, { upstream: vendor, model: spare, weight: 0.001 }] }
`,
    );
    const { apiKey } = await stack.createAccount();
    t.is((await send(stack, apiKey, 'chat')).status, 200);
    t.is(callsOf(vendor, 'dying'), 1);

    vendor.setFaults({ status: 500 }, { model: 'dying' });
    // Callers do not notice the failures: each request continues on the other route.
    const during = await sendMany(60, 10, () => send(stack, apiKey, 'chat'));
    t.true(during.every(({ status }) => status === 200));
    type Row = { upstream_model: string; breaker: string; failed: number };
    const rows = await readAdmin<Row[]>(stack.env, 'upstream', 'list');
    t.not(rows.find((row) => row.upstream_model === 'dying')!.breaker, 'closed');
    t.is(rows.find((row) => row.upstream_model === 'spare')!.breaker, 'closed');

    // The breaker is open for all workers: except for single probes, the route is not called.
    const before = callsOf(vendor, 'dying');
    const startedAt = performance.now();
    const after = await sendMany(200, 20, () => send(stack, apiKey, 'chat'));
    t.true(after.every(({ status }) => status === 200));
    const probes = callsOf(vendor, 'dying') - before;
    t.true(probes <= 1 + (performance.now() - startedAt) / 900, `${probes} calls of 200`);

    vendor.setFaults({}, { model: 'dying' });
    await waitFor('the route to be called again', async () => {
      const callsBefore = callsOf(vendor, 'dying');
      await sendMany(10, 5, () => send(stack, apiKey, 'chat'));
      return callsOf(vendor, 'dying') - callsBefore >= 10;
    });
  },
);

test.serial(
  'if every route is down, callers quickly get an error, which is also in their logs, and the model recovers by itself',
  async (t) => {
    const { stack, vendor } = await startRig(
      t,
      (url) => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}" } }
models: [{ id: chat, ${common}, routes: [{ upstream: vendor, model: only }] }]
`,
    );
    const { apiKey } = await stack.createAccount();
    vendor.setFaults({ status: 503 });
    const failures = await sendMany(40, 10, () => send(stack, apiKey, 'chat'));
    t.true(failures.every(({ status, code }) => status === 502 && code === 'upstream_error'));
    // Without the breaker, each of the 40 requests would make three calls.
    t.true(callsOf(vendor, 'only') < 60, `${callsOf(vendor, 'only')} calls`);
    vendor.setFaults({});
    await waitFor('a successful response', async () => (await send(stack, apiKey, 'chat')).status === 200);
    await waitFor('all failures to be in the log', async () => {
      const response = await fetch(`${stack.url}/v1/users/request_logs`, {
        headers: { authorization: `Bearer ${apiKey}` },
      });
      const { items } = (await response.json()) as { items: { response_code: number }[] };
      return items.filter((item) => item.response_code === 502).length >= 40;
    });
  },
);

test.serial(
  'a key that has no credit or is unknown goes on cooldown for all workers, and the operator can see and reset it',
  async (t) => {
    const { stack, vendor } = await startRig(
      t,
      (url) => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}", apiKeys: [sk-a+exhausted, sk-b+revoked, sk-good] } }
models: [{ id: chat, ${common}, routes: [{ upstream: vendor, model: gpt }] }]
`,
    );
    const { apiKey } = await stack.createAccount();
    const all = await sendMany(60, 6, () => send(stack, apiKey, 'chat'));
    t.true(all.every(({ status }) => status === 200));
    const countCallsBy = (key: string): number =>
      vendor.requests.entries.filter((entry) => entry.key === key).length;
    // At most the calls that were in flight when the failure was noticed.
    t.true(countCallsBy('sk-a+exhausted') <= 6 && countCallsBy('sk-b+revoked') <= 6);
    t.is(countCallsBy('sk-good'), 60);

    const { stdout } = await runAdmin(stack.env, 'upstream', 'list', '--json');
    t.false(/sk-/.test(stdout), stdout);
    type Row = { key: string; not_called: string | null };
    const rows = JSON.parse(stdout) as Row[];
    t.deepEqual(
      rows.map((row) => row.not_called !== null),
      [true, true, false],
    );
    t.regex(rows[0]!.not_called!, /429/);
    t.regex(rows[1]!.not_called!, /401/);

    const { exitCode } = await runAdmin(stack.env, 'upstream', 'reset', 'vendor');
    t.is(exitCode, 0);
    const after = await readAdmin<Row[]>(stack.env, 'upstream', 'list');
    t.true(after.every((row) => row.not_called === null));
    t.is((await runAdmin(stack.env, 'upstream', 'reset', 'nobody')).exitCode, 1);
  },
);

test.serial(
  'a rate-limited key is not called by any worker before the time that its vendor specified',
  async (t) => {
    const { stack, vendor } = await startRig(
      t,
      (url) => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}", apiKeys: [sk-limited+fail-429+retry-1500, sk-good] } }
models: [{ id: chat, ${common}, routes: [{ upstream: vendor, model: gpt }] }]
`,
    );
    const { apiKey } = await stack.createAccount();
    const countLimitedCalls = (): number =>
      vendor.requests.entries.filter((entry) => entry.key?.startsWith('sk-limited') === true).length;
    await waitFor('the rate limit to be hit', async () => {
      t.is((await send(stack, apiKey, 'chat')).status, 200);
      return countLimitedCalls() > 0;
    });
    const hitAt = performance.now();
    const callsAtLimit = countLimitedCalls();
    type Row = { failed: number; rate_limited: number };
    await waitFor('the rate limit error to be counted', async () => {
      const [row] = await readAdmin<Row[]>(stack.env, 'upstream', 'list');
      return row?.failed === 0 && row.rate_limited === callsAtLimit;
    });
    while (performance.now() - hitAt < 1_300) {
      t.is((await send(stack, apiKey, 'chat')).status, 200);
    }
    t.is(countLimitedCalls(), callsAtLimit);
    await waitFor('the key to be tried again', async () => {
      t.is((await send(stack, apiKey, 'chat')).status, 200);
      return countLimitedCalls() > callsAtLimit;
    });
  },
);

test.serial(
  'all workers together respect the concurrency limit of an upstream, and further requests wait',
  async (t) => {
    const { stack, vendor } = await startRig(
      t,
      (url) => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}", maxConcurrency: 3 } }
models: [{ id: chat, ${common}, routes: [{ upstream: vendor, model: gpt }] }]
`,
      // A fourth concurrent call would be a 429.
      { cost: { perCallMs: 20, maxConcurrency: 3, overflow: 'reject' } },
    );
    const { apiKey } = await stack.createAccount();
    const all = await sendMany(90, 30, () => send(stack, apiKey, 'chat'));
    t.true(all.every(({ status }) => status === 200));
    t.deepEqual(vendor.requests.counters.byStatus, { 200: 90 });
  },
);

test.serial('if a vendor hangs or does not know the model, another route takes over', async (t) => {
  const { stack, vendor } = await startRig(
    t,
    (url) => `
upstreams: { vendor: { kind: openai, baseUrl: "${url}", timeoutMs: 1000 } }
models:
  - { id: hanging, ${common}, routes: [{ upstream: vendor, model: gpt+hang, weight: 100000 }, { upstream: vendor, model: gpt-a, weight: 0.001 }] }
  - { id: retired, ${common}, routes: [{ upstream: vendor, model: gpt+fail-404, weight: 100000 }, { upstream: vendor, model: gpt-b, weight: 0.001 }] }
  - { id: gone, ${common}, routes: [{ upstream: vendor, model: gpt-gone+fail-404 }] }
`,
  );
  const { apiKey } = await stack.createAccount();
  t.is((await send(stack, apiKey, 'hanging')).status, 200);
  t.is(callsOf(vendor, 'gpt+hang'), 1);
  t.is((await send(stack, apiKey, 'retired')).status, 200);
  t.is(callsOf(vendor, 'gpt+fail-404'), 1);
  // If no route knows the model, the vendor's error is returned after one call.
  t.like(await send(stack, apiKey, 'gone'), { status: 502, code: 'upstream_error' });
  t.is(callsOf(vendor, 'gpt-gone+fail-404'), 1);
});

test.serial('an operator can see and reset an upstream from a shell that lacks its API keys', async (t) => {
  const vendor = await startVendorSimulator();
  t.teardown(() => vendor.close());
  const stack = await useStack(t, {
    env: { SECRET_KEY_OF_TEST: 'sk-x+revoked' },
    catalog: `
upstreams: { vendor: { kind: openai, baseUrl: "${vendor.url}/v1", apiKeys: ["env:SECRET_KEY_OF_TEST"] } }
models: [{ id: chat, ${common}, routes: [{ upstream: vendor, model: gpt }] }]
`,
  });
  const { apiKey } = await stack.createAccount();
  t.is((await send(stack, apiKey, 'chat')).status, 502);
  const { SECRET_KEY_OF_TEST: _secret, ...shell } = stack.env;
  const [row] = await readAdmin<{ key: string; upstream: string }[]>(shell, 'upstream', 'list');
  t.like(row, { upstream: 'vendor', key: '1 of 1 (SECRET_KEY_OF_TEST is not set in this shell)' });
  const before = vendor.requests.counters.total;
  t.is((await send(stack, apiKey, 'chat')).status, 502);
  t.is(vendor.requests.counters.total, before, 'on cooldown');
  t.is((await runAdmin(shell, 'upstream', 'reset', 'vendor')).exitCode, 0);
  t.is((await send(stack, apiKey, 'chat')).status, 502);
  t.true(vendor.requests.counters.total > before, 'called again');
});
