import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { useStack } from '../support/stack.ts';
import { waitFor } from '../support/wait-for.ts';
import { pipelineReads } from './attacks/pipelined-reads.ts';

test('5000 reads pipelined on ten connections are at most ten at once, and end when their callers leave', async (t) => {
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
  // A request that was begun has its id.
  const isUnderWay = (response: ServerResponse): boolean =>
    response.hasHeader('x-request-id') && !response.writableFinished && !response.destroyed;
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, responses.filter(isUnderWay).length);
  }, 1);
  t.teardown(() => clearInterval(timer));
  const { statuses } = await pipelineReads({ url: stack.url, apiKey });
  t.deepEqual([...new Set(statuses)], [200]);
  t.true(responses.length > 1_000, 'they were read ahead');
  t.true(most > 0 && most <= 11, `${most} at once`);
  await waitFor('the last to end', () => !responses.some(isUnderWay));
  const begun = responses.filter((response) => response.hasHeader('x-request-id'));
  t.true(begun.length < responses.length / 2, `${begun.length} of ${responses.length} were begun`);
});
