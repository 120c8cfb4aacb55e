import test from 'ava';
import { findMailCode } from '../../../scripts/embedded/smtp/read-mail.ts';
import type { ApiAccount, CreatedApiAccount } from '../../../api/contract/web-accounts.ts';
import type { EmailCodeRequested } from '../../../api/contract/web-auth.ts';
import type { AuditAction } from '../../../shared/account-area/audit-actions.ts';
import { AppError } from '../../../shared/contract/errors.ts';
import { MailQueue } from '../../../shared/account-area/mail-queue.ts';
import {
  queueNotice,
  queuePendingNotices,
  type NoticeDeps,
} from '../../../shared/account-area/queue-notice.ts';
import { recordAction } from '../../../shared/account-area/record-action.ts';
import type { AuditEvent, WebUser } from '../../../shared/account-area/web-models.ts';
import { createNotice } from '../../support/mails.ts';
import { readCode } from '../../support/mailbox.ts';
import type { TestStack } from '../../support/stack.ts';
import { waitFor } from '../../support/wait-for.ts';
import { callWeb, createSeparateUser, linkAccount, startWebStack } from '../../support/web-accounts.ts';
import { webStoresOf, type WebClient } from '../../support/web-client.ts';

/** Users are notified once of each sensitive action, even if a process dies at any point. */

const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

let stack: TestStack;
let dependencies: NoticeDeps;

test.before(async () => {
  stack = await startWebStack({ mail: true });
  const mails = new MailQueue(stack.redis, stack.config);
  dependencies = { ...webStoresOf(stack), mails };
});
test.after.always(() => stack.close());

const noticesTo = (email: string) =>
  stack.mailbox!.received.filter(({ recipient, text }) => recipient === email && findMailCode(text) === null);

async function confirmAction(
  client: WebClient,
  email: string,
  method: string,
  path: string,
  codePath: string,
) {
  const { body } = await callWeb<EmailCodeRequested>(client, 'POST', `${codePath}/request-code`, { email });
  const mail = await stack.mailbox!.waitForMail(email, ({ text }) => findMailCode(text) !== null);
  const confirmation = { challenge_id: body.challenge_id, code: readCode(mail) };
  return { mail, ...(await callWeb(client, method, path, confirmation)) };
}

/** Resolves when all notices for the user are queued. */
const waitUntilQueued = (user: WebUser) =>
  waitFor('all notices to be queued', async () => {
    const events = await dependencies.audit.list(user._id, 50);
    return events.every(({ notice, outcome }) => notice !== 'pending' && outcome !== 'started') && events;
  });

const subjects: Record<'ru' | 'en', [AuditAction, subject: string][]> = {
  en: [
    ['account-created', 'Your account is ready'],
    ['account-linked', 'An account was linked'],
    ['key-revealed', 'An API key was shown'],
    ['key-regenerated', 'An API key was replaced'],
    ['account-unlinked', 'An account was unlinked'],
  ],
  ru: [
    ['account-created', 'Ваш аккаунт готов'],
    ['account-linked', 'Аккаунт привязан'],
    ['key-revealed', 'API‑ключ показан'],
    ['key-regenerated', 'API‑ключ заменён'],
    ['account-unlinked', 'Аккаунт отвязан'],
  ],
};

for (const language of ['ru', 'en'] as const) {
  test(`each sensitive action is one audit event and one notice with address and device, in the user’s language: ${language}`, async (t) => {
    const { client, user, address } = await createSeparateUser(stack, { userAgent: firefox, language });
    await dependencies.users.recordSignIn(user._id, language);
    const { email } = user;
    const first = await callWeb<CreatedApiAccount>(client, 'POST', '/api-accounts/first', { label: 'Mine' });
    t.is(first.status, 201);
    await linkAccount(client, await stack.createAccount(), 'Other');
    const path = `/api-accounts/${first.body.account.id}`;
    const revealed = await confirmAction(client, email, 'POST', `${path}/reveal`, `${path}/reveal`);
    t.is(revealed.status, 200);
    t.true(revealed.mail.text!.includes('Mine'));
    t.true(
      revealed.mail.text!.includes(address),
      'the mail with the code shows the address of the requester',
    );
    t.is(
      revealed.mail.subject,
      language === 'en' ? 'Code to show an API key' : 'Код для просмотра API‑ключа',
    );
    const regenerated = `${path}/regenerate-api-key`;
    t.is((await confirmAction(client, email, 'PUT', regenerated, regenerated)).status, 200);
    t.is((await confirmAction(client, email, 'DELETE', path, `${path}/unlink`)).status, 204);

    for (const [action, subject] of subjects[language]) {
      const mail = await stack.mailbox!.waitForMail(email, (one) => one.subject === subject);
      const label = action === 'account-linked' ? 'Other' : 'Mine';
      for (const part of [mail.text!, mail.html!]) {
        for (const fact of [label, address, 'Firefox', 'Linux'])
          t.true(part.includes(fact), `${action}: ${fact}`);
      }
    }
    const events = await waitUntilQueued(user);
    t.deepEqual(
      events.map(({ action }) => action).toReversed(),
      subjects[language].map(([action]) => action),
    );
    for (const event of events) {
      t.like(event, {
        outcome: 'done',
        notice: 'queued',
        address,
        device: 'Firefox, Linux',
        userId: user._id,
      });
      t.truthy(event.sessionId);
      t.regex(event.requestId!, /^\S{10,}$/);
      t.truthy(event.accountId);
    }
    t.is(noticesTo(email).length, 5);
  });
}

test('an action that fails is recorded as failed, and no notice is sent', async (t) => {
  const [owner, other] = [await createSeparateUser(stack), await createSeparateUser(stack)];
  const account = await stack.createAccount();
  const { id } = await linkAccount(owner.client, account);
  const rejection = await callWeb(other.client, 'POST', '/api-accounts/link', { api_key: account.apiKey });
  t.is(rejection.status, 409);
  t.deepEqual(
    await webStoresOf(stack).audit.list(other.user._id, 1),
    [],
    'a rejected request does not start an action',
  );
  const path = `/api-accounts/${id}`;
  const wrongConfirmation = { challenge_id: '7d0b6a53-9c1e-4a7e-8f1b-0b2f6f9b7c42', code: '123456' };
  t.is((await callWeb(owner.client, 'POST', `${path}/reveal`, wrongConfirmation)).status, 422);
  t.is((await waitUntilQueued(owner.user)).length, 1, 'no action starts without the right code');
  const action = { action: 'account-unlinked', userId: other.user._id } as const;
  await t.throwsAsync(recordAction(dependencies, action, () => Promise.reject(new AppError('not_found'))));
  const events = await dependencies.audit.list(other.user._id, 10);
  t.like(events, [{ action: 'account-unlinked', outcome: 'failed', notice: 'none' }]);
  await stack.mailbox!.waitForMail(owner.user.email);
  t.deepEqual(noticesTo(other.user.email), []);
});

/** Stores an unfinished event, as a process that died some time ago leaves it. */
async function leaveEvent(user: WebUser, more: Partial<AuditEvent> = {}, ageMs = 120_000): Promise<string> {
  const id = await dependencies.audit.start({
    userId: user._id,
    action: 'key-regenerated',
    label: 'Mine',
    address: '203.0.113.9',
    device: 'Firefox, Linux',
    notice: 'pending',
    ...more,
  });
  await stack.mongo.db
    .collection<AuditEvent>('web_audit')
    .updateOne({ _id: id }, { $set: { at: new Date(Date.now() - ageMs) } });
  return id;
}

test('if a process dies before the notice is queued, workers send it, once', async (t) => {
  const { user } = await createSeparateUser(stack);
  const started = await leaveEvent(user);
  const done = await leaveEvent(user, { outcome: 'done', action: 'key-revealed' });
  // All workers search for unfinished events at the same time.
  await Promise.all(Array.from({ length: 5 }, () => queuePendingNotices(dependencies)));
  for (const subject of ['API‑ключ заменён', 'API‑ключ показан'])
    await stack.mailbox!.waitForMail(user.email, (mail) => mail.subject === subject);
  await queuePendingNotices(dependencies);
  const events = await dependencies.audit.list(user._id, 10);
  t.deepEqual(events.map(({ _id }) => _id).toSorted(), [started, done].toSorted());
  t.true(events.every(({ notice }) => notice === 'queued'));
  t.is(noticesTo(user.email).length, 2);
});

test('if a process dies between queuing the notice and recording that, no second notice is sent', async (t) => {
  const { user } = await createSeparateUser(stack);
  const { _id: userId, email } = user;
  // The event is too recent for workers to send its notice.
  const id = await leaveEvent(user, {}, -3_600_000);
  await dependencies.mails.add(createNotice({ email }), { id });
  await stack.mailbox!.waitForMail(email);
  await stack.mongo.db
    .collection<AuditEvent>('web_audit')
    .updateOne({ _id: id }, { $set: { at: new Date(Date.now() - 120_000) } });
  await queuePendingNotices(dependencies);
  t.like(await dependencies.audit.list(userId, 10), [{ notice: 'queued' }]);
  // Notices are sent in queue order: a second one would have been sent before this one.
  const { user: later } = await createSeparateUser(stack);
  await leaveEvent(later);
  await queuePendingNotices(dependencies);
  await stack.mailbox!.waitForMail(later.email);
  t.is(noticesTo(email).length, 1);
});

test('if it is unknown whether an action completed, its event stays open, and the notice states that the outcome is unknown', async (t) => {
  const { user } = await createSeparateUser(stack);
  const event = { userId: user._id, action: 'key-regenerated', label: 'Mine' } as const;
  const outageError = new AppError('service_unavailable', { message: 'the response was lost' });
  await t.throwsAsync(
    recordAction(dependencies, event, () => Promise.reject(outageError)),
    { is: outageError },
  );
  const [openEvent] = await dependencies.audit.list(user._id, 10);
  t.like(openEvent, { outcome: 'started', notice: 'pending' });
  await queueNotice(dependencies, openEvent!);
  const unknownOutcomeMail = await stack.mailbox!.waitForMail(user.email);
  t.regex(
    unknownOutcomeMail.text!.replaceAll(/\s+/g, ' '),
    /Мы не смогли подтвердить, что действие завершилось/,
  );

  const { noted } = await recordAction(dependencies, event, () => Promise.resolve());
  await noted;
  const knownOutcomeMail = await stack.mailbox!.waitForMail(user.email);
  t.notRegex(knownOutcomeMail.text!.replaceAll(/\s+/g, ' '), /не смогли подтвердить/);
});

test('a notice that cannot be queued does not block later notices', async (t) => {
  const { user } = await createSeparateUser(stack);
  const id = await leaveEvent(user);
  const event = { userId: 'nobody', action: 'key-revealed', notice: 'pending' } as const;
  const at = new Date(Date.now() - 3_600_000);
  const broken = await dependencies.audit.start(event);
  await stack.mongo.db.collection<AuditEvent>('web_audit').updateOne({ _id: broken }, { $set: { at } });
  const users = Object.assign(Object.create(dependencies.users) as NoticeDeps['users'], {
    findById: async (userId: string) => {
      if (userId === 'nobody') throw new Error('broken');
      return await dependencies.users.findById(userId);
    },
  });
  await t.throwsAsync(queuePendingNotices({ ...dependencies, users }), { instanceOf: AggregateError });
  t.like(
    (await dependencies.audit.list(user._id, 10)).find(({ _id }) => _id === id),
    { notice: 'queued' },
  );
});

test('workers do not handle a recent event, because the process that wrote it may still be running', async (t) => {
  const { user } = await createSeparateUser(stack);
  await leaveEvent(user, {}, -3_600_000);
  await queuePendingNotices(dependencies);
  t.like(await dependencies.audit.list(user._id, 10), [{ notice: 'pending' }]);
});

test('renaming an account is recorded, and no notice is sent', async (t) => {
  const { client, user } = await createSeparateUser(stack);
  const { id } = await linkAccount(client, await stack.createAccount());
  await callWeb<ApiAccount>(client, 'PATCH', `/api-accounts/${id}`, { label: 'x' });
  await stack.mailbox!.waitForMail(user.email);
  const events = await waitUntilQueued(user);
  t.like(events[0], { action: 'label-changed', label: 'x', linkId: id, outcome: 'done', notice: 'none' });
  t.is(noticesTo(user.email).length, 1, 'the notice of the link');
});
