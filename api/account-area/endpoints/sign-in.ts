// decision 0057
import { randomUUID } from 'node:crypto';
import { AppError, invalidField } from '../../../shared/contract/errors.ts';
import { operations } from '../../contract/operations.ts';
import type { CodeRequest, EmailCodeRequested, SignInPurpose } from '../../contract/web-auth.ts';
import { normalizeTimeZone } from '../time-zone.ts';
import { callerNetwork } from '../../http/callers/caller-network.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { parseBody } from '../../http/middleware/parse-body.ts';
import { inDatabaseTurn } from '../../http/request/in-database-turn.ts';
import type { Services } from '../../services.ts';
import { respondWithSession } from './respond-with-session.ts';
import { languageOf } from '../../http/request/language-of.ts';
import { deviceOf, originOf } from './caller.ts';
import { enterCode } from './enter-code.ts';
import { readEmail, invalidMailedCode } from './fields.ts';
import { mailCode } from './mail-code.ts';
import { record } from './record.ts';
import { changeFromPage } from './steps.ts';
import { isCurrentRefreshToken } from '../../../shared/account-area/session-store.ts';
import type { ApiContext } from '../../http/request/context.ts';
import { readCookie } from '../../http/request/session-cookies.ts';

/**
 * Mails a sign-in code. Whether the address belongs to a user is looked up only when the mail is sent, so that neither
 * the response nor its timing reveals it.
 */
export const requestCode = defineEndpoint(
  operations.requestCode,
  [...changeFromPage, parseBody],
  (services) => {
    const { limits } = services.web;
    return async (context) => {
      const request = context.state.body;
      const { purpose } = request;
      const email = readEmail(request.email);
      checkPurpose(services, purpose);
      const network = callerNetwork(context.ip);
      const baseLimits = [
        { name: 'mailed-codes-mailbox', who: email },
        { name: 'mailed-codes-network', who: network },
      ] as const;
      // Do not consume a captcha for a request that is rejected anyway.
      await limits.check(baseLimits);
      const isPerson = await checkCaptcha(services, request, network);
      await limits.take([
        ...baseLimits,
        ...(isPerson
          ? []
          : [
              { name: 'codes-without-captcha-mailbox' as const, who: email },
              { name: 'codes-without-captcha-network' as const, who: network },
            ]),
      ]);
      const language = languageOf(context);
      const requested = await mailCode(services, { purpose, email, subject: '' }, (code) => ({
        kind: 'sign-in-code',
        email,
        purpose,
        language,
        ...originOf(context),
        ...code,
      }));
      context.status = 201;
      context.body = requested satisfies EmailCodeRequested;
    };
  },
);

function checkPurpose({ config }: Services, purpose: SignInPurpose): void {
  if (purpose === 'login' || config.signup.isOpen) return;
  throw invalidField(
    ['body', 'purpose'],
    'must be login: this service does not accept new users. Existing users can still sign in.',
    {
      msgRu:
        'допустимо только значение login: сервис не регистрирует новых пользователей. Существующие пользователи могут войти.',
    },
  );
}

/**
 * @returns whether the caller is considered human; always true while captchas are off
 * @throws AppError `captcha_failed`
 */
async function checkCaptcha(
  { config: { captchaMode }, web: { captcha } }: Services,
  { purpose, captcha_token: token = null }: CodeRequest,
  network: string,
): Promise<boolean> {
  if (captchaMode === 'off') return true;
  if (token === null) {
    if (captchaMode === 'optional') return false;
    throw captchaFailed(
      'is required. Get a captcha from POST /v1/web/auth/captcha/challenge, and send the clicks to ' +
        'POST /v1/web/auth/captcha/verify, which returns the token.',
      'не указан. Получите капчу через POST /v1/web/auth/captcha/challenge и отправьте клики в ' +
        'POST /v1/web/auth/captcha/verify: токен будет в ответе.',
    );
  }
  if (await captcha.redeemToken(token, purpose, network)) return true;
  throw captchaFailed(
    'is unknown, expired or already used, or was issued for a different purpose or network. Solve a new captcha.',
    'неизвестен, просрочен, уже использован или выдан для другой цели или сети. Пройдите новую капчу.',
  );
}

const captchaFailed = (msg: string, msgRu: string): AppError =>
  invalidField(['body', 'captcha_token'], msg, { code: 'captcha_failed', type: 'captcha_failed', msgRu });

/** Signs in with a mailed code. Access to the mailbox is the only proof a user needs. */
export const verifyCode = defineEndpoint(
  operations.verifyCode,
  [...changeFromPage, parseBody],
  (services) => {
    const { users, sessions } = services.web;
    return async (context) => {
      const request = context.state.body;
      const timezone = normalizeTimeZone(request.timezone ?? '') ?? undefined;
      // The code is verified inside the database turn: the attempt may consume the code, so nothing after it may have
      // to wait.
      await inDatabaseTurn(services, context, async () => {
        const expected = { purposes: ['login', 'signup'], subject: '' } as const;
        const found = await enterCode(services, context, request, expected);
        const language = languageOf(context);
        const signsUp = found.purpose === 'signup' && services.config.signup.isOpen;
        const { user, isNew } = signsUp
          ? await users.findOrCreate(found.email, { timezone, language })
          : { user: await users.findByEmail(found.email), isNew: false };
        // No code is mailed to a user that does not exist, so this code was guessed.
        if (user === null) throw invalidMailedCode();
        const { _id: userId } = user;
        if (user.bannedAt !== null) {
          const action = { action: 'sign-in-refused', userId } as const;
          throw await record(services, context, action, () => Promise.resolve(userBanned()));
        }
        const sessionId = randomUUID();
        const action = { action: isNew ? 'signed-up' : 'signed-in', userId, sessionId } as const;
        await record(services, context, action, async () => {
          await endFormerSession(services, context);
          if (request.end_other_sessions) await endOtherSessions(services, context, action);
          const opened = await sessions.start({
            id: sessionId,
            userId,
            rememberMe: request.remember_me,
            device: deviceOf(context),
            address: context.ip,
          });
          const signedIn = await users.recordSignIn(userId, language);
          // A concurrent ban may have missed the new session.
          if (signedIn === null || signedIn.bannedAt !== null) {
            await sessions.revokeAll(userId);
            throw userBanned();
          }
          respondWithSession(services, context, signedIn, opened);
        });
      });
    };
  },
);

/** Reveals the ban only to someone who can read the user's mail. */
const userBanned = (): AppError =>
  new AppError('account_banned', {
    message: 'This user is banned. Contact support to find out why.',
    messageRu: 'Пользователь заблокирован. Чтобы узнать причину, обратитесь в поддержку.',
  });

/**
 * Ends the session that the browser had before this sign-in. Otherwise it would stay open unnoticed. It is identified
 * by the refresh cookie, because the session cookie expires after a quarter of an hour. If this refresh token is not
 * the latest one of the session, a copy of the token was used elsewhere, so the user is notified by mail, as in
 * `refreshSession`.
 */
async function endFormerSession(services: Services, context: ApiContext): Promise<void> {
  const { sessions } = services.web;
  const token = readCookie(context, services.config, 'refresh');
  const former = token === null ? null : await sessions.findByRefreshToken(token);
  if (token === null || former === null) return;
  const { userId, _id: sessionId } = former;
  const action = isCurrentRefreshToken(former, token) ? 'signed-out' : 'refresh-replayed';
  await record(services, context, { action, userId, sessionId }, () => sessions.revoke(userId, sessionId));
}

/**
 * Ends all other sessions of a user who signs in, before the new session starts. Requests of those sessions that are
 * still running cannot end the new one (`listIdsIfOpen`), so this locks out an attacker who keeps ending the user's
 * sessions.
 * @param sessionId the session that is about to start
 */
async function endOtherSessions(
  services: Services,
  context: ApiContext,
  { userId, sessionId }: { readonly userId: string; readonly sessionId: string },
): Promise<void> {
  const { sessions } = services.web;
  if ((await sessions.list(userId)).length === 0) return;
  const action = { action: 'sessions-revoked', userId, sessionId } as const;
  await record(services, context, action, () => sessions.revokeAll(userId));
}
