import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import Koa from 'koa';
import { checkOverLimit, markOverLimit } from '../../../../api/http/connections/over-limit-requests.ts';
import { renderError } from '../../../../api/http/middleware/render-error.ts';
import type { ApiMiddleware, RequestState } from '../../../../api/http/request/context.ts';
import { requestContext } from '../../../../api/http/middleware/request-context.ts';
import { AppError, toAppError } from '../../../../shared/contract/errors.ts';
import { captureLog } from '../../../support/captured-log.ts';

/** Sends a request to a server with one middleware, and reads the response. @returns its status and body, and the log lines */
async function callOnce(t: ExecutionContext, step: ApiMiddleware, supportEmail: string | null = null) {
  const { log, lines, waitForLine } = captureLog();
  const app = new Koa<RequestState>();
  app.use(requestContext(log)).use(renderError(log, supportEmail)).use(step);
  const handle = app.callback();
  const server = createServer((request, response) => void handle(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/models`);
  const body = await response.text();
  await waitForLine(({ msg }) => msg === 'request');
  return { status: response.status, body, lines };
}

test('a request on a connection over the limit is logged with an access line alone', async (t) => {
  const { status, lines } = await callOnce(t, (context) => {
    markOverLimit(context.req);
    checkOverLimit(context.req);
  });
  t.is(status, 503);
  t.deepEqual(
    lines.map(({ msg, code }) => [msg, code]),
    [['request', 'queue_full']],
  );
});

test('a failure after the response head has been sent is logged like any other failure', async (t) => {
  const { status, lines } = await callOnce(t, (context) => {
    context.respond = false;
    context.res.writeHead(200).end('the last event reports the error');
    context.state.error = toAppError(new TypeError('simulated bug'));
  });
  t.is(status, 200);
  const failures = lines.filter(({ msg }) => msg === 'request failed');
  t.is(failures.length, 1);
  const { type, stack } = failures[0]!['err'] as { type: string; stack: string };
  t.is(type, 'TypeError');
  t.regex(stack, /simulated bug[^]*render-error\.test/);
});

test('a failure that is not a fault of ours has only the access line, with its reason', async (t) => {
  const { body, lines } = await callOnce(t, () => {
    throw new AppError('service_unavailable', { cause: new Error('the store is away') });
  });
  t.notRegex(body, /the store is away/);
  t.like(lines, [{ msg: 'request', level: 40, code: 'service_unavailable', reason: 'the store is away' }]);
  t.is(lines.length, 1);
});

test('a banned caller is told the support address, and nobody else is', async (t) => {
  const fail =
    (code: 'account_banned' | 'model_not_found'): ApiMiddleware =>
    () => {
      throw new AppError(code);
    };
  const banned = await callOnce(t, fail('account_banned'), 'help@example.com');
  t.is(banned.status, 403);
  t.regex(banned.body, /Write to help@example\.com\..*Пишите на help@example\.com\./s);
  t.notRegex((await callOnce(t, fail('model_not_found'), 'help@example.com')).body, /help@example/);
  t.notRegex((await callOnce(t, fail('account_banned'))).body, /Write to/);
});
