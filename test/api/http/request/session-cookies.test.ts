import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import Koa from 'koa';
import type { ApiContext } from '../../../../api/http/request/context.ts';
import { clearCookies, setCookie } from '../../../../api/http/request/session-cookies.ts';

const config = { publicUrl: 'http://127.0.0.1' } as const;

test('if work ends after its response was sent, no cookies are set, and the work does not fail', async (t) => {
  const app = new Koa();
  let context: ApiContext | undefined;
  let response: ServerResponse | undefined;
  app.use((koaContext) => {
    context = koaContext as unknown as ApiContext;
    response = koaContext.res;
    clearCookies(context, config);
    koaContext.status = 204;
  });
  const server = app.listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const sent = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.is(sent.headers.getSetCookie().length, 2);
  t.true(response?.headersSent);
  const late = { token: 'late', expiresAt: new Date(Date.now() + 60_000) };
  t.notThrows(() => setCookie(context!, config, 'session', late));
  t.is(String(response?.getHeader('set-cookie')).includes('late'), false);
});
