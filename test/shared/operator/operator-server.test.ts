import test, { type ExecutionContext } from 'ava';
import { ProcessMetrics } from '../../../shared/platform/metrics/process-metrics.ts';
import { startOperatorServer } from '../../../shared/operator/operator-server.ts';
import { captureLog } from '../../support/captured-log.ts';

/** What a worker shows to probes and to a monitoring system. */

async function start(t: ExecutionContext, metricsToken: string | null = null) {
  const state = { isReady: true };
  const server = await startOperatorServer({
    config: { host: '127.0.0.1', metricsToken, trustProxy: false },
    port: 0,
    metrics: new ProcessMetrics({ role: 'worker' }),
    isReady: () => state.isReady,
    log: captureLog().log,
  });
  t.teardown(() => server.stop());
  const get = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`${server.url}${path}`, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  return { get, state };
}

test('a worker is live while it runs, and ready while it takes work', async (t) => {
  const { get, state } = await start(t);
  t.like(await get('/livez'), { status: 200, text: '{"status":"ok"}' });
  t.like(await get('/readyz'), { status: 200, text: '{"status":"ok"}' });
  state.isReady = false;
  t.like(await get('/livez'), { status: 200 });
  t.like(await get('/readyz'), { status: 503, text: '{"status":"unavailable"}' });
  t.like(await get('/readyz?x=1', { method: 'HEAD' }), { status: 503, text: '' });
});

test('its metrics are for whoever has the token, or for this machine if there is none', async (t) => {
  const open = await start(t);
  const { status, text } = await open.get('/metrics');
  t.is(status, 200);
  t.regex(text, /^model_gateway_build_info\{role="worker"\} 1$/m);
  t.like(await open.get('/metrics', { headers: { via: '1.1 proxy' } }), { status: 403 });
  const closed = await start(t, 'secret');
  const refused = await closed.get('/metrics');
  t.is(refused.status, 401);
  t.is(refused.headers.get('www-authenticate'), 'Bearer realm="metrics"');
  t.regex(refused.text, /METRICS_TOKEN/);
  t.regex(refused.text, /"message_ru":"Токен метрик/);
  t.notRegex(refused.text, /ключ/i);
  t.like(await closed.get('/metrics', { headers: { authorization: 'Bearer secret' } }), { status: 200 });
});

test('any other path and method gets an error that says what there is', async (t) => {
  const { get } = await start(t);
  const missing = await get('/v1/chat/completions');
  t.is(missing.status, 404);
  t.regex(missing.text, /\/livez, \/readyz and \/metrics/);
  const posted = await get('/metrics', { method: 'POST', body: 'x' });
  t.is(posted.status, 405);
  t.is(posted.headers.get('allow'), 'HEAD, GET');
});
