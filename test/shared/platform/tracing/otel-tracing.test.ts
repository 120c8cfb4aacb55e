import test, { type ExecutionContext } from 'ava';
import type { TracingConfig } from '../../../../shared/platform/config/tracing-config.ts';
import { OtelTracing } from '../../../../shared/platform/tracing/otel-tracing.ts';
import { readTraceparent } from '../../../../shared/platform/tracing/traceparent.ts';
import type { SpanStart } from '../../../../shared/platform/tracing/tracing.ts';
import { captureLog } from '../../../support/captured-log.ts';
import { startOtlpReceiver, type OtlpReceiver } from '../../../support/otlp-receiver.ts';

const config: TracingConfig = {
  endpoint: '',
  headers: {},
  timeoutMs: 10_000,
  delayMs: 10,
  serviceName: null,
  resource: {},
  sampler: 'parentbased_always_on',
  samplerRatio: 1,
  trustsTraceparent: false,
};

const start: SpanStart = { name: 'work', kind: 'server', attributes: { here: 1, absent: undefined } };
const caller = { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', tracestate: 'a=1' };

async function useReceiver(
  t: ExecutionContext,
  ...args: Parameters<typeof startOtlpReceiver>
): Promise<OtlpReceiver> {
  const receiver = await startOtlpReceiver(...args);
  t.teardown(() => receiver.close());
  return receiver;
}

test('what is left is exported when the process stops, with the configured names and headers', async (t) => {
  const receiver = await useReceiver(t);
  const tracing = new OtelTracing(
    {
      ...config,
      endpoint: receiver.url,
      headers: { 'x-token': 'secret' },
      resource: { 'deployment.environment.name': 'test' },
      delayMs: 600_000,
    },
    'api',
    captureLog().log,
  );
  const startedAtMs = performance.now() - 500;
  const span = tracing.startSpan({ ...start, startedAtMs, links: [caller] });
  span.set({ more: 'x' });
  span.fail();
  span.end();
  span.end();
  await tracing.stop();
  t.is(receiver.spans.length, 1);
  const [received] = receiver.spans;
  t.is(`00-${received!.traceId}-${received!.spanId}-01`, span.traceparent);
  t.is(received!.parentSpanId, undefined);
  t.deepEqual(received!.attributes, { here: 1, more: 'x' });
  t.true(received!.hasFailed);
  t.like(received!.links[0], {
    traceId: readTraceparent(caller.traceparent).traceId,
    spanId: readTraceparent(caller.traceparent).spanId,
    traceState: 'a=1',
  });
  t.true(received!.endedAtMs - received!.startedAtMs >= 499);
  t.true(Math.abs(received!.startedAtMs - (performance.timeOrigin + startedAtMs)) < 1_000);
  t.like(received!.resource, {
    'service.name': 'model-gateway-api',
    'deployment.environment.name': 'test',
  });
  t.is(receiver.headers[0]!['x-token'], 'secret');
});

test('a caller that is not trusted cannot have its request sampled', async (t) => {
  const receiver = await useReceiver(t);
  for (const sampler of ['always_off', 'parentbased_always_off', 'parentbased_traceidratio'] as const) {
    const tracing = new OtelTracing(
      { ...config, endpoint: receiver.url, sampler, samplerRatio: 0 },
      'api',
      captureLog().log,
    );
    const span = tracing.startSpan({ ...start, links: [caller] });
    t.regex(span.traceparent, /-00$/);
    span.end();
    await tracing.stop();
  }
  t.is(receiver.spans.length, 0);
});

test('the parts of a trace are sampled as its first span is', async (t) => {
  const receiver = await useReceiver(t);
  const tracing = new OtelTracing({ ...config, endpoint: receiver.url }, 'worker', captureLog().log);
  const unsampled = { traceparent: caller.traceparent.replace(/01$/, '00') };
  for (const parent of [caller, unsampled]) tracing.startSpan({ ...start, parent }).end();
  await tracing.stop();
  t.deepEqual(
    receiver.spans.map(({ traceId, parentSpanId }) => [traceId, parentSpanId]),
    [[readTraceparent(caller.traceparent).traceId, readTraceparent(caller.traceparent).spanId]],
  );
});

test('a collector that hangs does not hold up a process that stops', async (t) => {
  const receiver = await useReceiver(t, () => undefined);
  const endpoint = receiver.url;
  const tracing = new OtelTracing({ ...config, endpoint, timeoutMs: 600_000 }, 'api', captureLog().log);
  for (let i = 0; i < 10_000; i++) tracing.startSpan(start).end();
  await receiver.waitForSpans(() => true);
  await tracing.stop();
  t.pass();
});

test('a collector that hangs or refuses is one line in the log', async (t) => {
  const refusing = await useReceiver(t, (response) =>
    response.writeHead(403).end('a long text of the collector'),
  );
  const hanging = await useReceiver(t, () => undefined);
  for (const { url } of [refusing, hanging]) {
    const { log, lines, waitForLine } = captureLog();
    const tracing = new OtelTracing({ ...config, endpoint: url, timeoutMs: 50 }, 'api', log);
    for (let i = 0; i < 2_000; i++) tracing.startSpan(start).end();
    await waitForLine(({ msg }) => msg === 'exporting traces failed');
    await tracing.stop();
    t.is(lines.length, 1);
    t.false(JSON.stringify(lines).includes('a long text of the collector'));
  }
});
