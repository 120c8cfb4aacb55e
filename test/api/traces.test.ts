import test from 'ava';
import { startVendorSimulator, type VendorSimulator } from '../../scripts/vendor-simulator/simulator.ts';
import { captureLog, type CapturedLog } from '../support/captured-log.ts';
import { createJob, waitForJob } from '../support/jobs.ts';
import { startOtlpReceiver, type OtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver.ts';
import { startStack, useStack, type TestAccount, type TestStack } from '../support/stack.ts';
import { startRole } from '../support/worker-process.ts';

/** The traces of requests, as a collector gets them. */

const chat = (id: string, routes: readonly string[]): string => `
  - id: ${id}
    type: chat
    context: 8192
    pricing: { type: tokens, prompt: 100, completion: 200 }
    routes: [${routes.join(', ')}]`;

const catalogOf = (url: string): string => `
upstreams:
  vendor: { kind: openai, baseUrl: "${url}/v1", apiKeys: [sk-vendor-key-0123456789] }
  traced: { kind: openai, baseUrl: "${url}/v1", traces: on }
  traced-anthropic: { kind: anthropic, baseUrl: "${url}", apiKeys: [sk-ant-0123456789], traces: on }
  traced-gemini: { kind: gemini, baseUrl: "${url}", apiKeys: [AIza-0123456789], traces: on }
  single: { kind: openai, baseUrl: "${url}/v1", maxConcurrency: 1, traces: on }
models:
${chat('chat', ['{ upstream: vendor, model: gpt-sim }'])}
${chat('retried', [
  '{ upstream: vendor, model: gpt-first+fail-503, weight: 1000000000 }',
  '{ upstream: vendor, model: gpt-second, weight: 0.000001 }',
])}
${chat('failing', ['{ upstream: vendor, model: gpt-sim+fail-400 }'])}
${chat('traced', ['{ upstream: traced, model: gpt-traced }'])}
${chat('traced-anthropic', ['{ upstream: traced-anthropic, model: claude-traced }'])}
${chat('traced-gemini', ['{ upstream: traced-gemini, model: gemini-traced }'])}
  - id: vectors
    type: embedding
    context: 8192
    dimensions: { default: 1536, adjustable: true }
    pricing: { in_cost_per_million: 7.77 }
    routes: [{ upstream: single, model: emb-sim+slow-300 }]
  - id: painter
    type: image
    context: 8192
    pricing: { type: image, cost_per_image: 1 }
    routes: [{ upstream: traced, model: gpt-image-sim }]
`;

const [server, client, consumer] = [2, 3, 5];
const callersTrace = '4bf92f3577b34da6a3ce929d0e0e4736';
const callersSpan = '00f067aa0ba902b7';
const traceparent = `00-${callersTrace}-${callersSpan}-01`;

let receiver: OtlpReceiver;
let vendor: VendorSimulator;
let captured: CapturedLog;
let stack: TestStack;
let account: TestAccount;

const tracingEnv = (): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
  OTEL_BSP_SCHEDULE_DELAY: '20',
});

test.before(async () => {
  receiver = await startOtlpReceiver();
  vendor = await startVendorSimulator();
  captured = captureLog();
  stack = await startStack({ catalog: catalogOf(vendor.url), env: tracingEnv(), log: captured.log });
  account = await stack.createAccount();
});

test.after.always(async () => {
  await stack?.close();
  await vendor?.close();
  await receiver?.close();
});

interface Sent {
  readonly requestId: string;
  readonly status: number;
  readonly text: string;
}

async function send(path: string, body: object, headers: Record<string, string> = {}): Promise<Sent> {
  const response = await stack.post(path, account.apiKey, body, headers);
  const text = await response.text();
  return { requestId: response.headers.get('x-request-id')!, status: response.status, text };
}

const chatBody = (model: string, more: object = {}): object => ({
  model,
  messages: [{ role: 'user', content: 'a secret of the caller' }],
  max_tokens: 20,
  ...more,
});

const isOf =
  (requestId: string, kind: number | undefined) =>
  (span: ReceivedSpan): boolean =>
    span.kind === kind && span.attributes['model_gateway.request_id'] === requestId;

/** The span of the request, of its run, and of the calls to vendors in its trace. */
async function waitForTrace(requestId: string, calls = 1) {
  const [request] = await receiver.waitForSpans(isOf(requestId, server));
  const [run] = await receiver.waitForSpans(isOf(requestId, consumer));
  const found = await receiver.waitForSpans(
    ({ kind, parentSpanId }) => kind === client && parentSpanId === run!.spanId,
    calls,
  );
  return { request: request!, run: run!, calls: found };
}

const linksOf = ({ links }: ReceivedSpan): string[] => links.map(({ spanId }) => spanId);

for (const stream of [false, true])
  test(`a ${stream ? 'streamed ' : ''}chat is one trace: the request, its run at a worker, the call to the vendor`, async (t) => {
    const { requestId, status } = await send('/v1/chat/completions', chatBody('chat', { stream }));
    t.is(status, 200);
    const { request, run, calls } = await waitForTrace(requestId);
    const [call] = calls;
    t.is(request.name, 'POST /v1/chat/completions');
    t.is(request.parentSpanId, undefined);
    t.like(request.attributes, {
      'http.request.method': 'POST',
      'http.route': '/v1/chat/completions',
      'http.response.status_code': 200,
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'chat',
      'model_gateway.account_id': account.id,
      'model_gateway.outcome': 'success',
    });
    t.is(run.name, 'process chat');
    t.is(run.parentSpanId, request.spanId);
    t.true(Number(run.attributes['model_gateway.queue_wait_seconds']) >= 0);
    t.is(call!.name, 'chat gpt-sim');
    t.like(call!.attributes, {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'compatible',
      'gen_ai.request.model': 'gpt-sim',
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(vendor.url).port),
      'model_gateway.upstream': 'vendor',
      // The simulator counts words.
      'gen_ai.usage.input_tokens': 5,
    });
    t.true(Number(call!.attributes['gen_ai.usage.output_tokens']) > 0);
    t.is('gen_ai.response.time_to_first_chunk' in call!.attributes, stream);
    for (const span of [request, run, call!]) {
      t.is(span.traceId, request.traceId);
      t.false(span.hasFailed);
      t.is(span.attributes['error.type'], undefined);
      t.regex(span.schemaUrl, /schemas/);
      t.true(span.endedAtMs >= span.startedAtMs);
    }
    t.is(request.resource['service.name'], 'model-gateway-api');
    t.is(run.resource['service.name'], 'model-gateway-worker');
    t.is(typeof run.resource['service.version'], 'string');
    const line = await captured.waitForLine(
      (one) => one['msg'] === 'request' && one['requestId'] === requestId,
    );
    t.is(line['traceId'], request.traceId);
  });

test('each attempt is a call of its own in the trace', async (t) => {
  const { requestId, status } = await send('/v1/chat/completions', chatBody('retried'));
  t.is(status, 200);
  const { calls, request } = await waitForTrace(requestId, 2);
  const [first, second] = [...calls].sort((a, b) => a.startedAtMs - b.startedAtMs);
  t.true(first!.hasFailed);
  t.like(first!.attributes, {
    'gen_ai.request.model': 'gpt-first+fail-503',
    'error.type': 'unavailable',
    'http.response.status_code': 503,
  });
  t.false(second!.hasFailed);
  t.is(second!.attributes['gen_ai.request.model'], 'gpt-second');
  t.false(request.hasFailed);
});

test('a request that the vendor rejects has its error in each span', async (t) => {
  const { requestId, status } = await send('/v1/chat/completions', chatBody('failing'));
  t.is(status, 400);
  const { calls, run, request } = await waitForTrace(requestId);
  t.is(calls[0]!.attributes['error.type'], 'rejected');
  t.is(run.attributes['error.type'], 'upstream_rejected');
  t.like(request.attributes, {
    'error.type': 'upstream_rejected',
    'http.response.status_code': 400,
    'model_gateway.outcome': 'rejected',
  });
  t.false(request.hasFailed, 'the server did not fail');
});

test('images are traced', async (t) => {
  const body = { model: 'painter', prompt: 'a secret of the caller' };
  const { requestId, status, text } = await send('/v1/images/generations', body);
  t.is(status, 200, text);
  const { calls, run, request } = await waitForTrace(requestId);
  t.is(request.name, 'POST /v1/images/generations');
  t.is(run.name, 'process image');
  t.is(calls[0]!.name, 'generate_content gpt-image-sim');
  t.is(calls[0]!.attributes['gen_ai.output.type'], 'image');
  const sent = await vendor.requests.waitFor(({ model }) => model === 'gpt-image-sim');
  t.is(sent.headers['traceparent'], `00-${calls[0]!.traceId}-${calls[0]!.spanId}-01`);
});

test('a call that serves several accounts is in the trace of the first, and linked with all of them', async (t) => {
  const others = await Promise.all([1, 2, 3].map(() => stack.createAccount()));
  const embed = async ({ apiKey }: TestAccount, input: string): Promise<void> => {
    const response = await stack.post('/v1/embeddings', apiKey, { model: 'vectors', input });
    t.is(response.status, 200, await response.text());
  };
  const isMerged = ({ kind, links }: ReceivedSpan): boolean => kind === client && links.length > 1;
  // While one call runs, the others wait for its slot and are merged.
  for (let round = 0; round < 10 && !receiver.spans.some(isMerged); round++) {
    const texts = Array.from({ length: 8 }, (_, i) => `${round} ${i}`);
    await Promise.all(texts.map((text, i) => embed(others[i % others.length]!, text)));
    await receiver.waitForSpans(
      ({ kind, name }) => kind === server && name === 'POST /v1/embeddings',
      (round + 1) * texts.length,
    );
  }
  const [call] = await receiver.waitForSpans(isMerged);
  t.is(call!.name, 'embeddings emb-sim+slow-300');
  t.true(Number(call!.attributes['gen_ai.usage.input_tokens']) > 0);
  t.is(call!.attributes['model_gateway.requests'], call!.links.length);
  const runs = await receiver.waitForSpans(
    ({ kind, spanId }) => kind === consumer && linksOf(call!).includes(spanId),
    call!.links.length,
  );
  const first = runs.find(({ spanId }) => spanId === call!.parentSpanId);
  t.is(first?.traceId, call!.traceId);
  t.is(new Set(runs.map(({ traceId }) => traceId)).size, runs.length);
  for (const run of runs) {
    t.is(run.name, 'process embedding');
    t.is(linksOf(run).includes(call!.spanId), run !== first);
  }
  const sent = await vendor.requests.waitFor(
    ({ headers }) => headers['traceparent'] === `00-${call!.traceId}-${call!.spanId}-01`,
  );
  t.is(sent.inputs, call!.links.length);
});

test('a durable job has a trace of its own, which links to the request that placed it', async (t) => {
  const job = await createJob(stack, account, '/v1/chat/completions', chatBody('chat'));
  await waitForJob(stack, account, job.id);
  const { request, run, calls } = await waitForTrace(job.id);
  t.is(request.attributes['http.response.status_code'], 202);
  t.not(run.traceId, request.traceId);
  t.is(run.parentSpanId, undefined);
  t.deepEqual(linksOf(run), [request.spanId]);
  t.is(run.attributes['model_gateway.job_attempt'], 1);
  t.is(calls[0]!.traceId, run.traceId);
});

test('a caller’s trace is a link, and neither it nor ours is sent to the vendor', async (t) => {
  const callersHeaders = { traceparent, tracestate: 'vendor=secret-state', baggage: 'user=secret-baggage' };
  const { requestId } = await send('/v1/chat/completions', chatBody('chat'), callersHeaders);
  const { request, calls } = await waitForTrace(requestId);
  t.not(request.traceId, callersTrace);
  t.is(request.parentSpanId, undefined);
  t.like(request.links, [{ traceId: callersTrace, spanId: callersSpan, traceState: 'vendor=secret-state' }]);
  t.deepEqual(calls[0]!.links, []);
  const sent = vendor.requests.entries.filter(({ model }) => model === 'gpt-sim');
  t.true(sent.length > 0);
  for (const { headers } of sent)
    for (const name of ['traceparent', 'tracestate', 'baggage', 'b3']) t.is(headers[name], undefined, name);
});

for (const [what, headers] of Object.entries({
  'a traceparent that is not valid': { traceparent: `${traceparent}-more` },
  'a tracestate without a traceparent': { tracestate: 'a=1' },
}))
  test(`${what} is ignored`, async (t) => {
    const { requestId } = await send('/v1/chat/completions', chatBody('unknown'), headers);
    const [request] = await receiver.waitForSpans(isOf(requestId, server));
    t.deepEqual(request!.links, []);
    t.like(request!.attributes, { 'error.type': 'model_not_found', 'http.response.status_code': 404 });
    t.is(request!.attributes['gen_ai.request.model'], undefined, 'the caller’s own text');
  });

test('a tracestate that is too long is ignored', async (t) => {
  const headers = { traceparent, tracestate: `a=${'x'.repeat(511)}` };
  const { requestId } = await send('/v1/chat/completions', chatBody('unknown'), headers);
  const [request] = await receiver.waitForSpans(isOf(requestId, server));
  t.is(request!.links[0]!.traceId, callersTrace);
  t.falsy(request!.links[0]!.traceState);
});

for (const [model, vendorModel] of [
  ['traced', 'gpt-traced'],
  ['traced-anthropic', 'claude-traced'],
  ['traced-gemini', 'gemini-traced'],
] as const)
  test(`with traces: on, the vendor gets the span of the call to it, and nothing else (${model})`, async (t) => {
    const callersHeaders = { traceparent, tracestate: 'a=1', baggage: 'a=1' };
    const { requestId, status, text } = await send('/v1/chat/completions', chatBody(model), callersHeaders);
    t.is(status, 200, text);
    const { calls } = await waitForTrace(requestId);
    const sent = await vendor.requests.waitFor((entry) => entry.model === vendorModel);
    t.is(sent.headers['traceparent'], `00-${calls[0]!.traceId}-${calls[0]!.spanId}-01`);
    t.is(sent.headers['tracestate'], undefined);
    t.is(sent.headers['baggage'], undefined);
  });

test('a caller’s trace is the parent if callers are trusted', async (t) => {
  const env = { ...tracingEnv(), OTEL_TRUST_TRACEPARENT: 'on' };
  const trusting = await useStack(t, { catalog: catalogOf(vendor.url), env, workers: [] });
  const { apiKey } = await trusting.createAccount();
  for (const flags of ['01', '00']) {
    const headers = { traceparent: traceparent.replace(/01$/, flags), tracestate: 'a=1' };
    const response = await trusting.post('/v1/chat/completions', apiKey, chatBody('unknown'), headers);
    t.is(response.status, 404);
    await response.text();
  }
  await receiver.waitForSpans(({ traceId }) => traceId === callersTrace);
  await trusting.api.stop();
  const ofCaller = receiver.spans.filter(({ traceId }) => traceId === callersTrace);
  t.deepEqual(
    ofCaller.map(({ parentSpanId }) => parentSpanId),
    [callersSpan],
    'the request that its caller does not sample is not sampled',
  );
});

test('a collector that hangs delays no request', async (t) => {
  const hanging = await startOtlpReceiver(() => undefined);
  t.teardown(() => hanging.close());
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: hanging.url, OTEL_BSP_SCHEDULE_DELAY: '1' };
  const own = await useStack(t, { catalog: catalogOf(vendor.url), env });
  const { apiKey } = await own.createAccount();
  for (let i = 0; i < 3; i++) {
    const response = await own.post('/v1/chat/completions', apiKey, chatBody('chat'));
    t.is(response.status, 200);
    await response.text();
    await hanging.waitForSpans(() => true);
  }
});

test('without the variable, OpenTelemetry’s SDK is not loaded', async (t) => {
  const toImport = (code: string): string => `data:text/javascript,${encodeURIComponent(code)}`;
  const refuse = `export async function resolve(name, context, next) {
    if (name.startsWith('@opentelemetry/')) throw new Error('packages of OpenTelemetry are loaded');
    return await next(name, context);
  }`;
  const setUp = `import { register } from 'node:module'; register(${JSON.stringify(toImport(refuse))});`;
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint = '', ...env } = stack.env;
  const untraced = { ...env, NODE_OPTIONS: `--import=${toImport(setUp)}` };
  for (const role of ['api', 'worker'] as const) {
    const running = await startRole(t, role, untraced);
    t.is(await running.terminate(), 0);
    await t.throwsAsync(startRole(t, role, { ...untraced, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }), {
      message: /exited before/,
    });
  }
});

test.after('no span contains what callers wrote, or a key', () => {
  const text = JSON.stringify(receiver.spans);
  for (const secret of ['a secret of the caller', account.apiKey, 'sk-vendor-key', 'secret-baggage'])
    if (text.includes(secret)) throw new Error(`a span contains "${secret}"`);
});
