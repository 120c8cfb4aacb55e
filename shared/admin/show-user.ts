import { toRubNumber } from '../encoding/money.ts';
import { mapBounded } from '../platform/runtime/map-bounded.ts';
import { formatDevice } from '../account-area/user-agent.ts';
import type { AuditEvent, WebLink, WebSession, WebUser } from '../account-area/web-models.ts';
import { SignupGrantStore, type SignupDecision } from '../accounts/signup-grant-store.ts';
import { readAccountNames } from './account-names.ts';
import type { AdminDeps } from './admin-deps.ts';

export function describeUser(user: WebUser) {
  return {
    id: user._id,
    email: user.email,
    timezone: user.timezone,
    language: user.language,
    created_at: user.createdAt.toISOString(),
    last_login_at: user.lastLoginAt?.toISOString() ?? null,
    banned: user.bannedAt !== null,
    ban_reason: user.banReason,
  };
}

/** Describes a user with the user's accounts, sessions and latest events. */
export async function describeUserInFull(context: AdminDeps, user: WebUser, maxEvents: number) {
  const { sessions, audit, links } = context.web;
  const [linked, openSessions, events, grant] = await Promise.all([
    links.list(user._id),
    sessions.list(user._id),
    audit.list(user._id, maxEvents),
    new SignupGrantStore(context.mongo.db).find(user._id),
  ]);
  const names = await readAccountNames(context, [
    grant?.accountId ?? null,
    ...linked.map(({ accountId }) => accountId),
    ...events.map(({ accountId }) => accountId),
  ]);
  const nameOf = (accountId: string | null): string | null => names.get(accountId ?? '') ?? null;
  return {
    ...describeUser(user),
    grant: grant === null ? null : { ...describeGrant(grant), account_name: nameOf(grant.accountId) },
    accounts: (await describeLinkedAccounts(context, linked)).map((one) => ({
      ...one,
      account_name: nameOf(one.id),
    })),
    sessions: openSessions.map(describeSession),
    events: events.map((event) => ({ ...describeEvent(event), account_name: nameOf(event.accountId) })),
  };
}

/** What was decided when the user created the first account. */
function describeGrant({ denialReason, at, accountId, balanceNano, freeRequests }: SignupDecision) {
  return {
    at: at.toISOString(),
    refused: denialReason,
    account: accountId,
    balance: toRubNumber(balanceNano),
    free_requests: freeRequests,
  };
}

/** Describes linked accounts, oldest link first. Keys are masked as in the user's own lists. */
async function describeLinkedAccounts({ accounts, hotAccounts }: AdminDeps, links: readonly WebLink[]) {
  const documents = await accounts.findByIds(links.map(({ accountId }) => accountId));
  const keys = new Map(documents.map(({ _id, keyMasked }) => [_id, keyMasked]));
  return await mapBounded(links, 8, async ({ _id, accountId, label }) => {
    const account = await hotAccounts.get(accountId);
    return {
      id: accountId,
      link: _id,
      label,
      primary: _id === links[0]?._id,
      key: keys.get(accountId) ?? null,
      balance: toRubNumber(account.balanceNano),
      free_requests: account.freeRequests,
      banned: account.banned,
    };
  });
}

function describeSession(session: WebSession) {
  return {
    id: session._id,
    device: formatDevice(session),
    address_created: session.ipCreated,
    address_last_used: session.ipLastUsed,
    created_at: session.createdAt.toISOString(),
    last_used_at: session.lastUsedAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
  };
}

/** Actions of admin commands have no request id. */
function describeEvent(event: AuditEvent) {
  return {
    at: event.at.toISOString(),
    action: event.action,
    outcome: event.outcome,
    account: event.accountId,
    label: event.label,
    address: event.address,
    device: event.device,
    request_id: event.requestId,
    grant: event.grant ?? null,
  };
}
