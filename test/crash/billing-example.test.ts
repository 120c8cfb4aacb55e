import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { callAdmin, createToken, testAdminToken, type ListedPage } from '../support/admin-api.ts';
import { testOnOneRedis } from '../support/own-stores.ts';
import { findStablePort } from '../support/stable-port.ts';
import { useStack } from '../support/stack.ts';
import { startRole } from '../support/worker-process.ts';
import { runExample } from '../examples/run-example.ts';

/** The billing system in `examples/` goes on through a gateway that is killed meanwhile. */

const customers = ['anna', 'boris', 'vera', 'gleb'];
const invoices = Array.from({ length: 24 }, (_, i) => ({
  invoice: `2026-${i}`,
  customer: customers[i % customers.length]!,
  email: `${customers[i % customers.length]!}@example.com`,
  roubles: 10 + i / 100,
}));
/** The gateway is killed when this many invoices have been credited, so often in the middle of the next one. */
const kills = [3, 9, 17];

testOnOneRedis()(
  'the billing example creates each account and credits each invoice once, through three kills and a second run',
  async (t) => {
    const stack = await useStack(t, { env: { ADMIN_TOKEN: testAdminToken } });
    const token = await createToken(stack, 'billing-system', 'billing');
    const file = join(stack.dir, 'invoices.jsonl');
    await writeFile(file, invoices.map((invoice) => JSON.stringify(invoice)).join('\n'));
    const port = await findStablePort();
    const startVictim = () => startRole(t, 'api', { ...stack.env, PORT: String(port) });
    let victim = await startVictim();
    const child = spawn(process.execPath, ['dist/examples/billing.js', file], {
      env: { PATH: process.env['PATH'], MODEL_GATEWAY_URL: `http://127.0.0.1:${port}`, ADMIN_TOKEN: token },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    let credited = 0;
    for await (const _ of createInterface({ input: child.stdout })) {
      credited += 1;
      if (!kills.includes(credited)) continue;
      await victim.kill();
      victim = await startVictim();
    }
    await exited;
    t.is(child.exitCode, 0);
    t.is(credited, invoices.length);

    const again = await runExample(['billing', file], { MODEL_GATEWAY_URL: stack.url, ADMIN_TOKEN: token });
    t.is(again.code, 0, again.stderr);
    const { data } = (
      await callAdmin<ListedPage<{ id: string; name: string | null; total_balance_added: number }>>(
        stack.url,
        token,
        'GET',
        '/accounts?limit=100',
      )
    ).body;
    const billed = data.filter(({ name }) => name !== null && customers.includes(name));
    t.deepEqual(
      Object.fromEntries(billed.map(({ name, total_balance_added: added }) => [name, added])),
      Object.fromEntries(
        customers.map((customer) => [
          customer,
          invoices.reduce(
            (sum, one) => (one.customer === customer ? sum + Math.round(one.roubles * 100) : sum),
            0,
          ) / 100,
        ]),
      ),
    );
    t.is(billed.length, customers.length);
  },
);
