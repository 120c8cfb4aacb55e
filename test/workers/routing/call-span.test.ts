import test from 'ava';
import type { SpanStart, Span, Tracing } from '../../../shared/platform/tracing/tracing.ts';
import { CallSpan } from '../../../workers/routing/call-span.ts';
import { createRoute } from '../../support/routing.ts';

interface RecordedSpan extends Span {
  readonly start: SpanStart;
  readonly linked: Parameters<Span['link']>[0][];
  readonly attributes: Record<string, unknown>;
}

/** Keeps the spans that are started. */
function recordSpans(): { readonly tracing: Tracing; readonly spans: readonly RecordedSpan[] } {
  const spans: RecordedSpan[] = [];
  const startSpan = (start: SpanStart): Span => {
    const linked: RecordedSpan['linked'] = [];
    const attributes: Record<string, unknown> = { ...start.attributes };
    const span: RecordedSpan = {
      start,
      linked,
      attributes,
      traceId: 'trace',
      traceparent: `span-${spans.length}`,
      set: (more) => Object.assign(attributes, more),
      link: (context) => linked.push(context),
      fail: () => undefined,
      end: () => undefined,
    };
    spans.push(span);
    return span;
  };
  return { tracing: { trustsTraceparent: false, startSpan, stop: () => Promise.resolve() }, spans };
}

const observe = (tracing: Tracing) => ({
  noteCall: () => undefined,
  span: tracing.startSpan({ name: 'run', kind: 'consumer', attributes: {} }),
});

const call = { operation: 'embeddings', startedAtMs: 1, waitedMs: 2_500 } as const;

test('a call that serves many requests links to at most 32 of them, and says how many there are', (t) => {
  const { tracing, spans } = recordSpans();
  const observers = Array.from({ length: 100 }, () => observe(tracing));
  const route = createRoute('r');
  new CallSpan(tracing, { ...call, route, observers: () => observers }).end('success', null);
  const span = spans.at(-1)!;
  t.is(span.start.parent, spans[0]);
  t.deepEqual(span.start.links, spans.slice(0, 32));
  t.like(span.attributes, { 'model_gateway.requests': 100, 'model_gateway.slot_wait_seconds': 2.5 });
  t.deepEqual(spans[0]!.linked, []);
  t.deepEqual(spans[31]!.linked, [span]);
  t.deepEqual(spans[32]!.linked, []);
});

test('a call for one request is a part of its trace, without links', (t) => {
  const { tracing, spans } = recordSpans();
  const observers = [observe(tracing), { noteCall: () => undefined }];
  const route = createRoute('r');
  new CallSpan(tracing, { ...call, route, observers: () => observers }).end('timeout', null);
  t.like(spans[1]!.start, { name: 'embeddings r', kind: 'client', parent: spans[0]!, links: [] });
  t.like(spans[1]!.attributes, {
    'error.type': 'timeout',
    'server.address': '127.0.0.1',
    'server.port': 9,
    'gen_ai.provider.name': 'compatible',
  });
});

test('a call for nobody that is traced begins a trace', (t) => {
  const { tracing, spans } = recordSpans();
  const upstream = { ...createRoute('r').upstream, kind: 'builtin', baseUrl: '' } as const;
  const route = { ...createRoute('r'), upstream };
  const span = new CallSpan(tracing, { ...call, route, observers: () => [] });
  t.is(span.sentTraceparent, null);
  t.is(spans.length, 0);
  span.end('success', null);
  t.is(spans[0]!.start.parent, undefined);
});
