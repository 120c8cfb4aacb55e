import { once } from 'node:events';
import { createServer, request as sendRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import Koa from 'koa';
import { renderError } from '../../../../api/http/middleware/render-error.ts';
import type { RequestState } from '../../../../api/http/request/context.ts';
import { requestContext } from '../../../../api/http/middleware/request-context.ts';
import { AppError, invalidField } from '../../../../shared/contract/errors.ts';
import { captureLog } from '../../../support/captured-log.ts';

/** A server that rejects every request, with its access lines. */
async function startRefusing(t: ExecutionContext, error = new AppError('account_banned')) {
  const { log, waitForLine } = captureLog();
  const app = new Koa<RequestState>();
  app.silent = true;
  app.use(requestContext(log)).use(renderError(log));
  app.use(() => Promise.reject(error));
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { port: (server.address() as AddressInfo).port, waitForLine };
}

test('if a caller is rejected while sending its body, and disconnects after the error, the access line has the error status', async (t) => {
  const { port, waitForLine } = await startRefusing(t);
  const request = sendRequest({
    host: '127.0.0.1',
    port,
    method: 'POST',
    headers: { 'content-length': 10_000_000 },
  });
  request.on('error', () => undefined);
  request.write(Buffer.alloc(100_000));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  t.is(response.statusCode, 403);
  await once(response, 'data');
  request.destroy();
  t.is((await waitForLine())['status'], 403);
});

test('the access line of a failed request contains the error code and the invalid field, cut to a maximum length', async (t) => {
  const field = ['body', 'messages', 0, 'x'.repeat(10_000)];
  const { port, waitForLine } = await startRefusing(t, invalidField(field, 'is wrong'));
  await (await fetch(`http://127.0.0.1:${port}/v1/models`)).text();
  const { status, code, param } = await waitForLine();
  t.deepEqual([status, code], [422, 'validation_failed']);
  t.true(String(param).startsWith('messages.0.xxx'));
  t.regex(String(param), /^.{200}…$/);
});
