import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { pipelineReads } from './attacks/pipelined-reads.ts';

test('if 5000 reads are pipelined on ten connections, at most ten run concurrently, and they end when the callers disconnect', async (t) => {
  const stack = await useStack(t, { workers: [] });
  const { apiKey } = await stack.createAccount();
  const responses: ServerResponse[] = [];
  const port = Number(new URL(stack.url).port);
  const onRequest = (message: unknown): void => {
    const { server, response } = message as { server: Server; response: ServerResponse };
    if ((server.address() as AddressInfo).port === port) responses.push(response);
  };
  subscribe('http.server.request.start', onRequest);
  t.teardown(() => unsubscribe('http.server.request.start', onRequest));
  // A request that has started has an id.
  const isInFlight = (response: ServerResponse): boolean =>
    response.hasHeader('x-request-id') && !response.writableFinished && !response.destroyed;
  let maxInFlight = 0;
  const timer = setInterval(() => {
    maxInFlight = Math.max(maxInFlight, responses.filter(isInFlight).length);
  }, 1);
  t.teardown(() => clearInterval(timer));
  const { statuses } = await pipelineReads({ url: stack.url, apiKey });
  t.deepEqual([...new Set(statuses)], [200]);
  t.true(responses.length > 1_000, 'they were read ahead');
  t.true(maxInFlight > 0 && maxInFlight <= 11, `${maxInFlight} in flight`);
  await waitFor('the last read to end', () => !responses.some(isInFlight));
  const started = responses.filter((response) => response.hasHeader('x-request-id'));
  t.true(started.length < responses.length / 2, `${started.length} of ${responses.length} were started`);
});
