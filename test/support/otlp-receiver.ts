import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { waitFor } from './wait-for.ts';

type Value = string | number | boolean;

export interface ReceivedLink {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceState?: string;
}

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined for the first span of a trace. */
  readonly parentSpanId?: string;
  readonly name: string;
  /** 2: server, 3: client, 5: consumer. */
  readonly kind: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  readonly attributes: Readonly<Record<string, Value>>;
  readonly links: readonly ReceivedLink[];
  readonly hasFailed: boolean;
  readonly resource: Readonly<Record<string, Value>>;
  readonly schemaUrl: string;
}

export interface OtlpReceiver {
  /** The address of the collector, without a path. */
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Of each export. */
  readonly headers: readonly IncomingHttpHeaders[];
  /** Waits until `count` spans match. */
  waitForSpans(matches: (span: ReceivedSpan) => boolean, count?: number): Promise<readonly ReceivedSpan[]>;
  close(): Promise<void>;
}

/** A collector that takes traces by OTLP over HTTP, as JSON. By default it accepts them. */
export async function startOtlpReceiver(
  respond: (response: ServerResponse) => void = (response) => response.end('{}'),
): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      headers.push(request.headers);
      if (request.url !== '/v1/traces') {
        response.writeHead(404).end();
        return;
      }
      spans.push(...readSpans(JSON.parse(Buffer.concat(chunks).toString('utf8')) as Export));
      respond(response.setHeader('content-type', 'application/json'));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    headers,
    waitForSpans: (matches, count = 1) =>
      waitFor(
        () => `${count} spans; there are: ${spans.map(({ name }) => name).join(', ')}`,
        () => {
          const found = spans.filter(matches);
          return found.length >= count && found;
        },
      ),
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

type Attributes = readonly { readonly key: string; readonly value: Readonly<Record<string, Value>> }[];

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: Attributes };
    readonly scopeSpans: readonly {
      readonly schemaUrl?: string;
      readonly spans: readonly {
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly name: string;
        readonly kind: number;
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
        readonly attributes: Attributes;
        readonly links?: readonly ReceivedLink[];
        readonly status: { readonly code: number };
      }[];
    }[];
  }[];
}

function readSpans({ resourceSpans }: Export): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans, schemaUrl = '' }) =>
      spans.map(({ startTimeUnixNano, endTimeUnixNano, attributes, links = [], status, ...span }) => ({
        ...span,
        startedAtMs: Number(startTimeUnixNano) / 1e6,
        endedAtMs: Number(endTimeUnixNano) / 1e6,
        attributes: readAttributes(attributes),
        links,
        hasFailed: status.code === 2,
        resource: readAttributes(resource.attributes),
        schemaUrl,
      })),
    ),
  );
}

const readAttributes = (attributes: Attributes): Record<string, Value> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]!]));
