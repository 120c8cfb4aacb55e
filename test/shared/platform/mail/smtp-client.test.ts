import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import test from 'ava';
import { SMTPServer } from 'smtp-server';
import { createSmtpClient, readServer, SendingFailed } from '../../../../shared/platform/mail/smtp-client.ts';

test('with a password, another machine is only used over TLS; without a password, TLS is used if the server offers it', (t) => {
  const login = { user: 'ann@mail.example', pass: 'p/#s' };
  const cases = {
    'smtp://ann%40mail.example:p%2F%23s@mail.example': {
      port: 587,
      secure: false,
      requireTLS: true,
      auth: login,
    },
    'smtp://ann%40mail.example:p%2F%23s@10.0.0.1:25': {
      port: 25,
      secure: false,
      requireTLS: true,
      auth: login,
    },
    'smtps://ann%40mail.example:p%2F%23s@mail.example': {
      port: 465,
      secure: true,
      requireTLS: false,
      auth: login,
    },
    'smtp://ann%40mail.example:p%2F%23s@127.0.0.1:2525': { port: 2525, requireTLS: false, auth: login },
    'smtp://mail.example': { port: 587, secure: false, requireTLS: false },
  };
  for (const [url, expected] of Object.entries(cases)) t.like(readServer(url), expected, url);
  t.false('auth' in readServer('smtp://mail.example'));
  t.is(readServer('smtp://[::1]:25').host, '::1');
});

test('no mail is sent to a server with an untrusted certificate, and the failure is temporary', async (t) => {
  let mails = 0;
  // Uses the certificate that comes with the library.
  const server = new SMTPServer({
    secure: true,
    authOptional: true,
    logger: false,
    onData(stream, _session, done) {
      mails += 1;
      stream.resume().on('end', () => done());
    },
  });
  server.on('error', () => undefined);
  const listening = server.listen(0, '127.0.0.1');
  t.teardown(() => new Promise<void>((resolve) => server.close(resolve)));
  await once(listening, 'listening');
  const { port } = listening.address() as AddressInfo;
  const client = createSmtpClient({ url: `smtps://127.0.0.1:${port}`, maxConnections: 1 });
  t.teardown(() => client.close());
  const failure = await t.throwsAsync(
    client.send({
      from: { name: '', address: 'no-reply@gateway.example' },
      to: 'ann@example.com',
      messageId: 'one@gateway.example',
      subject: 'Your code',
      text: '493021',
      html: '<p>493021</p>',
    }),
    { instanceOf: SendingFailed },
  );
  t.false(failure?.isPermanent);
  t.is(mails, 0);
});
