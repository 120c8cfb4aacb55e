import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import Koa from 'koa';
import type { ApiContext } from '../../../api/request/context.ts';
import { clearCookies, setCookie } from '../../../api/request/session-cookies.ts';

const config = { publicUrl: 'http://127.0.0.1' } as const;

test('work that ends after its answer was sent sets no cookies, and does not fail for it', async (t) => {
  const app = new Koa();
  let context: ApiContext | undefined;
  let response: ServerResponse | undefined;
  app.use((own) => {
    context = own as unknown as ApiContext;
    response = own.res;
    clearCookies(context, config);
    own.status = 204;
  });
  const server = app.listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  t.is(answer.headers.getSetCookie().length, 2);
  t.true(response?.headersSent);
  const late = { token: 'late', expiresAt: new Date(Date.now() + 60_000) };
  t.notThrows(() => setCookie(context!, config, 'session', late));
  t.is(String(response?.getHeader('set-cookie')).includes('late'), false);
});
