import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { describeBegin } from '../../../../api/operator/alerts/alert.ts';
import { createTargets, createWebhookTarget } from '../../../../api/operator/alerts/alert-targets.ts';
import { captureLog } from '../../../support/captured-log.ts';
import { useMailbox } from '../../../support/mailbox.ts';

const alert = describeBegin({ name: 'no_workers', subjects: ['chat'], key: '', fields: {} }, 0);
const signal = new AbortController().signal;
const mailFrom = { name: 'Gateway', address: 'gateway@example.com' };

async function useReceiver(
  t: ExecutionContext,
  respond: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<string> {
  const server = createServer(respond).listen(0, '127.0.0.1');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('a webhook is a POST of the alert to an address that may be internal, with the login of its URL', async (t) => {
  const received: unknown[] = [];
  const url = await useReceiver(t, (request, response) => {
    void json(request).then((body) => {
      received.push([request.method, request.url, request.headers.authorization, body]);
      response.writeHead(204).end();
    });
  });
  await createWebhookTarget(`${url.replace('//', '//ann:p%40ss@')}/hook?token=1`).send(alert, signal);
  const login = `Basic ${Buffer.from('ann:p@ss').toString('base64')}`;
  t.deepEqual(received, [['POST', '/hook?token=1', login, alert.body]]);
});

test('redirects are not followed, and count as failures, as errors do', async (t) => {
  const paths: (string | undefined)[] = [];
  const url = await useReceiver(t, (request, response) => {
    paths.push(request.url);
    response.writeHead(request.url === '/moved' ? 307 : 500, { location: '/other' }).end();
  });
  await t.throwsAsync(createWebhookTarget(`${url}/moved`).send(alert, signal), { message: /307/ });
  await t.throwsAsync(createWebhookTarget(`${url}/broken`).send(alert, signal), { message: /500/ });
  t.deepEqual(paths, ['/moved', '/broken']);
});

test('a receiver that does not respond is given up, and an endless response is not read', async (t) => {
  const url = await useReceiver(t, (request, response) => {
    if (request.url === '/silent') return;
    response.writeHead(200);
    const write = (): void => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    };
    response.on('drain', write);
    write();
  });
  await t.throwsAsync(createWebhookTarget(`${url}/silent`, 200).send(alert, signal), {
    message: 'it did not respond within 0.2 s',
  });
  await t.notThrowsAsync(createWebhookTarget(`${url}/endless`).send(alert, signal));
});

test('a mail goes straight to the mail server, as plain text', async (t) => {
  const mailbox = await useMailbox(t);
  const config = { alerts: { webhookUrl: null, email: 'ops@example.com' }, smtpUrl: mailbox.url, mailFrom };
  const [target, ...others] = createTargets(config, captureLog().log);
  t.deepEqual(others, []);
  await target!.send(alert, signal);
  const mail = await mailbox.waitForMail('ops@example.com');
  t.is(mail.subject, '[model-gateway] no worker for the queue chat');
  t.is(mail.text?.replaceAll(/\s+/g, ' ').trim(), alert.body.text);
  t.is(mail.html, undefined);
  mailbox.refusal = { step: 'RCPT TO', status: 550 };
  await t.throwsAsync(target!.send(alert, signal));
});

test('a process that stops begins no mail', async (t) => {
  const mailbox = await useMailbox(t);
  const config = { alerts: { webhookUrl: null, email: 'ops@example.com' }, smtpUrl: mailbox.url, mailFrom };
  const [target] = createTargets(config, captureLog().log);
  await t.throwsAsync(target!.send(alert, AbortSignal.abort(new Error('stops'))), { message: 'stops' });
  t.is(mailbox.attempts, 0);
});

test('an address for alerts without a mail server is a warning at the start', (t) => {
  const { log, lines } = captureLog();
  const alerts = { webhookUrl: 'http://127.0.0.1:9/', email: 'ops@example.com' };
  const targets = createTargets({ alerts, smtpUrl: null, mailFrom }, log);
  t.deepEqual(
    targets.map(({ name }) => name),
    ['webhook'],
  );
  t.like(lines, [{ level: 40, msg: 'ALERT_EMAIL is set without SMTP_URL: no alerts are mailed' }]);
});
