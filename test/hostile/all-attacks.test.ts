import { fileURLToPath } from 'node:url';
import test from 'ava';
import { readRssMb } from '../../scripts/bench/harness/clocks/rss-clock.ts';
import { roleFlags } from '../../scripts/start/role-flags.ts';
import { startVendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { startEndlessVendor } from '../support/endless-vendor.ts';
import { waitForNoReservation } from '../support/observe.ts';
import { postJson } from '../support/post-json.ts';
import { useStack, type TestAccount } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { startProgram, type RoleProcess } from '../support/worker-process.ts';
import { sendBrokenText } from './attacks/broken-text.ts';
import { floodCaptchas } from './attacks/captcha-flood.ts';
import { floodConstantPages } from './attacks/constant-pages.ts';
import { sendForwardedText } from './attacks/forwarded-text.ts';
import { sendLongHeaders } from './attacks/long-headers.ts';
import { sendMadeUpSessions } from './attacks/made-up-sessions.ts';
import { sendMalformedRequests } from './attacks/malformed-requests.ts';
import { sendManyKeys } from './attacks/many-keys.ts';
import { readInParallel } from './attacks/parallel-reads.ts';
import { pipelineReads } from './attacks/pipelined-reads.ts';
import { openSilentSockets } from './attacks/silent-sockets.ts';
import { sendSlowBodies } from './attacks/slow-bodies.ts';
import { sendStrangeTargets } from './attacks/strange-targets.ts';
import { sendUncountedBodies } from './attacks/uncounted-bodies.ts';
import { sendUnknownKeys } from './attacks/unknown-keys.ts';
import { leaveStreamUnread } from './attacks/unread-stream.ts';
import type { Target } from './attacks/target.ts';

/** After every attack, a gateway's processes are still running, and use as much memory as before. */

const catalogOf = (endlessUrl: string, vendorUrl: string): string => `
upstreams:
  builtin: { kind: builtin }
  endless: { kind: openai, baseUrl: "${endlessUrl}/v1", disconnectGraceMs: 100 }
  vendor: { kind: openai, baseUrl: "${vendorUrl}/v1" }
models:
  - { id: demo-echo, type: chat, context: 200000, pricing: { prompt: 50, completion: 150 }, routes: [{ upstream: builtin, model: demo-echo }] }
  - { id: chat, type: chat, context: 200000, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: vendor, model: chat }] }
  - { id: embedding, type: embedding, context: 8192, dimensions: { default: 1536 }, pricing: { in_cost_per_million: 7 }, routes: [{ upstream: vendor, model: emb }] }
  - { id: image, type: image, context: 8192, size: [256x256], pricing: { type: image, cost_per_image: 1 }, routes: [{ upstream: vendor, model: img }] }
  - { id: endless, type: chat, context: 100000000, max_output_tokens: 10000000, pricing: { prompt: 1, completion: 1 }, routes: [{ upstream: endless, model: endless }] }
`;

const messagesOf = (content: string) => [{ role: 'user', content }];

/** Requests of honest callers, from a few words to some hundred kilobytes. Those without a body are GETs. */
const honestWork: readonly (readonly [path: string, body?: unknown])[] = [
  ['/v1/chat/completions', { model: 'demo-echo', messages: messagesOf('a few words') }],
  ['/v1/chat/completions', { model: 'chat', stream: true, messages: messagesOf('a few words '.repeat(50)) }],
  ['/v1/users/request_logs'],
  ['/v1/embeddings', { model: 'embedding', input: Array.from({ length: 16 }, (_, i) => `text ${i}`) }],
  ['/v1/models'],
  ['/v1/chat/completions', { model: 'chat', stream: true, messages: messagesOf('cat '.repeat(3_000)) }],
  ['/docs'],
  ['/v1/images/generations', { model: 'image', prompt: 'a lighthouse', response_format: 'b64_json' }],
  ['/v1/openapi.json'],
  ['/v1/embeddings', { model: 'embedding', input: Array.from({ length: 128 }, (_, i) => `text ${i}`) }],
  ['/v1/users/profile'],
];
/** Most of a Node process's memory is allocated in its first requests: heap, code, tables. */
const honestRequests = 660;
const honestConcurrency = 16;

async function sendHonestWork({ url, apiKey }: Target): Promise<void> {
  let sent = 0;
  const work = async (): Promise<void> => {
    while (sent < honestRequests) {
      const [path, body] = honestWork[sent % honestWork.length]!;
      sent += 1;
      const response =
        body === undefined
          ? await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${apiKey}` } })
          : await postJson(`${url}${path}`, apiKey, body);
      await response.arrayBuffer();
      if (response.status !== 200) throw new Error(`${path} returned ${response.status}`);
    }
  };
  await Promise.all(Array.from({ length: honestConcurrency }, work));
}

type Attackers = Readonly<Record<'rich' | 'poor' | 'fresh', TestAccount>>;

/** Each attack also has its own test file. Here the fast ones run one after another, in parallel with the slow ones. */
async function attack(url: string, { rich, poor, fresh }: Attackers): Promise<void> {
  const target = { url, apiKey: rich.apiKey };
  const slow = Promise.all([
    sendSlowBodies(target),
    ...Array.from({ length: 8 }, () => leaveStreamUnread({ ...target, model: 'endless' })),
  ]);
  await pipelineReads(target);
  await readInParallel(target);
  await floodConstantPages(target);
  await openSilentSockets(target);
  await sendMalformedRequests(target);
  await sendStrangeTargets(target);
  await sendLongHeaders({ url, rounds: 20 });
  await sendBrokenText(target);
  await sendForwardedText({ url, apiKey: fresh.apiKey });
  await sendManyKeys(target);
  await sendUncountedBodies({ url, apiKey: poor.apiKey, model: 'demo-echo', requests: 200, concurrency: 64 });
  await sendUnknownKeys({ url, requests: 2_000, concurrency: 64 });
  await sendMadeUpSessions({ url, requests: 2_000, concurrency: 64 });
  await floodCaptchas({ url, requests: 200 });
  await slow;
}

interface Memory {
  /** Resident memory of the process. */
  readonly rssMb: number;
  /** Live heap objects and their buffers. */
  readonly heldMb: number;
}

async function collectGarbage(role: RoleProcess): Promise<Memory> {
  const collected = role.nextLine('garbage collected');
  role.child.kill('SIGUSR2');
  return (await collected) as unknown as Memory;
}

const maxGrowthFactor = 1.3;
/** Maximum growth of the held memory from one round of attacks to the next. Tables and compiled code vary by less. */
const maxLeakMb = 10;
const roles = ['api', 'worker'] as const;

const onLinux = process.platform === 'linux' ? test : test.skip;

onLinux(
  'after all attacks, api and worker use as much memory as before, and a second round of attacks adds nothing',
  async (t) => {
    // The timeout restarts with every assertion, so it limits the time between two assertions.
    t.timeout(300_000);
    const [endless, vendor] = await Promise.all([startEndlessVendor(), startVendorSimulator()]);
    t.teardown(() => Promise.all([endless.close(), vendor.close()]));
    const stack = await useStack(t, { catalog: catalogOf(endless.url, vendor.url), workers: [] });
    const program = fileURLToPath(new URL('attacked-role.js', import.meta.url));
    const [api, worker] = await Promise.all(
      roles.map((role) => startProgram(t, role, [...roleFlags, program, role], stack.env)),
    );
    const running = { api: api!, worker: worker! };
    const url = running.api.readyLine['url'] as string;
    const rich = { balance: '1000000', rpm: 1_000_000 };
    const honest = await stack.createAccount(rich);
    const attackers = {
      rich: await stack.createAccount(rich),
      poor: await stack.createAccount({ balance: '0' }),
      fresh: await stack.createAccount(),
    };
    const collect = async () => ({
      api: await collectGarbage(running.api),
      worker: await collectGarbage(running.worker),
    });
    await sendHonestWork({ url, apiKey: honest.apiKey });
    // The first captchas load the drawing code.
    await floodCaptchas({ url, requests: 60 });
    t.pass('the honest work is done');
    const before = await collect();
    const attackAndSettle = async (): Promise<void> => {
      await attack(url, attackers);
      t.pass('all attacks are done');
      await waitForNoReservation(stack, attackers.rich.id);
      for (const role of roles) {
        const readMb = (): number => readRssMb(running[role].child.pid!);
        const peakMb = readMb();
        const maxMb = before[role].rssMb * maxGrowthFactor;
        // The process must free this memory without a forced garbage collection, because it is idle.
        await waitFor(
          () => `the ${role} to release memory: ${readMb()} MB, initially ${before[role].rssMb} MB`,
          () => readMb() <= maxMb,
        );
        t.pass(`the ${role} has released memory`);
        t.log(`${role}: ${[before[role].rssMb, peakMb, readMb()].map(Math.round).join(', ')} MB`);
      }
    };
    await attackAndSettle();
    const first = await collect();
    await attackAndSettle();
    const second = await collect();
    for (const role of roles) {
      const [firstMb, secondMb] = [first[role].heldMb, second[role].heldMb];
      t.true(secondMb < firstMb + maxLeakMb, `${role}: ${firstMb} MB, then ${secondMb} MB`);
      t.is(running[role].child.exitCode, null);
    }
  },
);
