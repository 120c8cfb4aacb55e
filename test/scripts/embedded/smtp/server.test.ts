import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { addCredentials } from '../../../../scripts/embedded/credentials.ts';
import { parseMail } from '../../../../scripts/embedded/smtp/read-mail.ts';
import { startEmbeddedSmtp, type EmbeddedSmtpOptions } from '../../../../scripts/embedded/smtp/server.ts';
import {
  createSmtpClient,
  SendingFailed,
  type OutgoingMail,
} from '../../../../shared/platform/mail/smtp-client.ts';
import { startEmbedded } from '../../../support/embedded-process.ts';

const password = 'test-password';

const mail: OutgoingMail = {
  from: { name: 'Test', address: 'no-reply@gateway.example' },
  to: 'ann@example.com',
  messageId: 'one@gateway.example',
  subject: 'Your code',
  text: 'Here it is:\n\n    493021\n',
  html: '<p>493021</p>',
};

function useClient(t: ExecutionContext, url: string) {
  const client = createSmtpClient({ url, maxConnections: 1 });
  t.teardown(() => client.close());
  return client;
}

async function startServer(t: ExecutionContext, options: Partial<EmbeddedSmtpOptions> = {}) {
  const dir = await mkdtemp(join(tmpdir(), 'mg-test-'));
  t.teardown(() => rm(dir, { recursive: true, force: true }));
  const outbox = join(dir, 'outbox');
  const lines: string[] = [];
  const print = (line: string): unknown => lines.push(line);
  const server = await startEmbeddedSmtp({ dir: outbox, password, print, ...options });
  t.teardown(() => server.close());
  return { dir: outbox, lines, url: server.endpoint };
}

test('a mail is stored in a file that only its owner can read, and one line with its code is printed', async (t) => {
  const { dir, lines, url } = await startServer(t);
  await useClient(t, addCredentials(url, password)).send(mail);
  const [name, ...others] = await readdir(dir);
  t.deepEqual(others, []);
  t.regex(name!, /^\d{4}-.*\.eml$/);
  t.is((await stat(join(dir, name!))).mode & 0o777, 0o600);
  t.is((await stat(dir)).mode & 0o777, 0o700);
  const { subject, to } = await parseMail(await readFile(join(dir, name!)));
  t.is(subject, 'Your code');
  t.deepEqual(to, [{ name: '', address: 'ann@example.com' }]);
  t.is(lines.length, 1);
  t.true(lines[0]!.startsWith('DEV mail to ann@example.com: Your code · code 493021 · '));
  t.true(lines[0]!.endsWith(name!));
});

test('the outbox deletes the oldest mails, including those of earlier starts, but no files that are not mails', async (t) => {
  const { dir } = await startServer(t);
  for (const name of ['2020-01-01T00-00-00-000Z-a.eml', '2020-01-02T00-00-00-000Z-b.eml', 'notes.txt'])
    await writeFile(join(dir, name), '');
  const server = await startEmbeddedSmtp({ dir, password, print: () => undefined, maxMails: 2 });
  t.teardown(() => server.close());
  await useClient(t, addCredentials(server.endpoint, password)).send(mail);
  const names = await readdir(dir);
  t.is(names.length, 3);
  t.false(names.includes('2020-01-01T00-00-00-000Z-a.eml'));
  t.true(names.includes('notes.txt'));
});

test('nobody can send a mail without the password', async (t) => {
  const { dir, url } = await startServer(t);
  for (const wrong of [url, addCredentials(url, 'guess'), url.replace('//', `//root:${password}@`)])
    await t.throwsAsync(useClient(t, wrong).send(mail), { instanceOf: SendingFailed });
  t.deepEqual(await readdir(dir), []);
});

test('unauthenticated connections that stay open do not block mail', async (t) => {
  const { dir, url } = await startServer(t, { maxUnauthenticated: 2 });
  const { port } = new URL(url);
  for (let i = 0; i < 4; i++) {
    const unauthenticated = connect(Number(port), '127.0.0.1');
    unauthenticated.on('error', () => undefined);
    t.teardown(() => unauthenticated.destroy());
    await new Promise((resolve) => unauthenticated.once('data', resolve));
  }
  await useClient(t, addCredentials(url, password)).send(mail);
  t.is((await readdir(dir)).length, 1);
});

test('a mail that is too large is rejected permanently, and a subject cannot control the terminal', async (t) => {
  const { dir, lines, url } = await startServer(t);
  const client = useClient(t, addCredentials(url, password));
  await t.throwsAsync(client.send({ ...mail, text: 'x'.repeat(1_200_000) }), { instanceOf: SendingFailed });
  t.deepEqual(await readdir(dir), []);
  await client.send({ ...mail, subject: 'a\u001b[2Jb' });
  t.notRegex(lines[0]!, /\p{Cc}/u);
});

test('run as a process, the server reports its address to the supervisor, accepts mails, and exits when asked to', async (t) => {
  const server = await startEmbedded(t, 'smtp', { input: password });
  await useClient(t, addCredentials(server.endpoint, password)).send(mail);
  t.is(await server.stop(), 0);
});
