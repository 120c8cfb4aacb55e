import Type from 'typebox';
import { noGrantReasons } from '../../../shared/accounts/no-grant-reasons.ts';
import { Nullable, StringEnum } from '../../../shared/contract/fields.ts';
import { defineOperation } from '../../../shared/contract/operation.ts';
import { DryRunQuery, dryRunQuery, dryRuns } from './dry-run.ts';
import {
  AccountName,
  Count,
  Moment,
  OptionalMoment,
  PageOfAdmin,
  Reason,
  ReasonQuery,
  Roubles,
  pageQuery,
} from './fields.ts';

const userFields = {
  id: Type.String(),
  email: Type.String(),
  timezone: Type.String(),
  language: Type.String(),
  created_at: Moment('When the user signed up.'),
  last_login_at: OptionalMoment('When the user last signed in.'),
  banned: Type.Boolean(),
  ban_reason: Nullable(Type.String()),
};

const AdminUser = Type.Object(userFields, { title: 'AdminUser' });

const LinkedAccount = Type.Object({
  id: Type.String(),
  account_name: AccountName,
  link: Type.Integer(),
  label: Type.String(),
  primary: Type.Boolean({ description: 'Whether it is the one that was linked first.' }),
  key: Nullable(Type.String({ description: 'Its API key, masked.' })),
  balance: Roubles('In roubles.'),
  free_requests: Type.Integer(),
  banned: Type.Boolean(),
});

const Address = (description: string) => Nullable(Type.String({ description }));

const UserSession = Type.Object(
  {
    id: Type.String(),
    device: Nullable(Type.String({ description: 'Browser and system; null if they are not known.' })),
    address_created: Address('Where it began.'),
    address_last_used: Address('Where it was last used.'),
    created_at: Moment('When it began.'),
    last_used_at: Moment('When it was last used, to some minutes.'),
    expires_at: Moment('When it ends without being used.'),
  },
  { title: 'AdminUserSession' },
);

const UserEvent = Type.Object(
  {
    at: Moment('When it began.'),
    action: Type.String({ description: 'Such as `signed-in` or `key-revealed`.' }),
    outcome: StringEnum(['started', 'done', 'failed'], {
      description: '`started`: how it ended is not known.',
    }),
    account: Nullable(Type.String({ description: 'The id of the account that it was about.' })),
    account_name: AccountName,
    label: Nullable(Type.String({ description: 'The label of this account at that time.' })),
    address: Address('Of the client; null for what operators do.'),
    device: Nullable(Type.String()),
    request_id: Nullable(Type.String()),
    grant: Nullable(
      Type.String({
        description: 'Of `account-created`: `granted`, or why the account got no sign-up grant.',
      }),
    ),
  },
  { title: 'AdminUserEvent' },
);

const SignupGrant = Type.Object(
  {
    at: Moment('When it was decided: when the user created the first account.'),
    refused: Nullable(
      StringEnum(noGrantReasons, { description: 'Why there is none; null if there is one.' }),
    ),
    account: Nullable(Type.String({ description: 'The id of the account that got it.' })),
    account_name: AccountName,
    balance: Roubles('What was given, in roubles.'),
    free_requests: Type.Integer({ description: 'The same in free requests.' }),
  },
  { title: 'AdminSignupGrant' },
);

const AdminUserDetails = Type.Object(
  {
    ...userFields,
    grant: Nullable(SignupGrant),
    accounts: Type.Array(LinkedAccount, { description: 'Oldest link first.' }),
    sessions: Type.Array(UserSession, { description: 'Those that are open.' }),
    events: Type.Array(UserEvent, { description: 'The latest ones, newest first.' }),
  },
  { title: 'AdminUserDetails' },
);

const user = {
  id: 'c1d2e3f4-0000-4000-8000-000000000001',
  email: 'anna@example.com',
  timezone: 'Europe/Moscow',
  language: 'ru',
  created_at: '2026-11-21T09:15:04.000Z',
  last_login_at: null,
  banned: false,
  ban_reason: null,
};

const exampleAccount = '0f7c2a1e-93f4-4c8b-a1d5-6f1f6c1d2e3a';

const userPath = Type.Object({
  user_id: Type.String({
    minLength: 1,
    maxLength: 254,
    description: 'The id or the email address of the user.',
  }),
});
const ofUser = { path: { user_id: user.id } };

export const listUsers = defineOperation({
  operationId: 'listUsers',
  tag: 'Admin',
  summary: 'List users of the account area',
  method: 'get',
  path: '/admin/users',
  auth: 'admin',
  adminScope: 'read',
  query: Type.Object(pageQuery),
  response: PageOfAdmin(AdminUser),
  errors: [],
  example: { query: { limit: 20 }, response: { data: [user], has_more: false, last_id: user.id } },
});

export const getUser = defineOperation({
  operationId: 'getUser',
  tag: 'Admin',
  summary: 'Get a user of the account area',
  description: 'With linked accounts, open sessions, the sign-up grant, and the latest events.',
  method: 'get',
  path: '/admin/users/{user_id}',
  auth: 'admin',
  adminScope: 'read',
  pathParameters: userPath,
  query: Type.Object({
    events: Type.Integer({ minimum: 1, maximum: 1_000, default: 20, description: 'How many events.' }),
  }),
  response: AdminUserDetails,
  errors: ['not_found'],
  example: {
    ...ofUser,
    response: {
      ...user,
      grant: {
        at: '2026-11-21T09:15:30.000Z',
        refused: null,
        account: exampleAccount,
        account_name: 'Example Ltd',
        balance: 0,
        free_requests: 10,
      },
      accounts: [
        {
          id: exampleAccount,
          account_name: 'Example Ltd',
          link: 1_204_337,
          label: 'Main',
          primary: true,
          key: 'sk-…2VBH',
          balance: 61,
          free_requests: 10,
          banned: false,
        },
      ],
      sessions: [
        {
          id: '019aa6b5-2f4e-7c1d-8a3b-5d6e7f8091a2',
          device: 'Firefox, Windows',
          address_created: '192.0.2.1',
          address_last_used: '192.0.2.7',
          created_at: '2026-11-21T09:15:04.000Z',
          last_used_at: '2026-11-21T18:02:11.000Z',
          expires_at: '2026-12-21T09:15:04.000Z',
        },
      ],
      events: [
        {
          at: '2026-11-21T09:15:04.000Z',
          action: 'signed-up',
          outcome: 'done',
          account: null,
          account_name: null,
          label: null,
          address: '192.0.2.1',
          device: 'Firefox, Windows',
          request_id: '019aa6b5-2f4d-7000-8000-000000000000',
          grant: null,
        },
      ],
    },
  },
});

export const banUser = defineOperation({
  operationId: 'banUser',
  tag: 'Admin',
  summary: 'Ban a user',
  description: 'Ends all sessions, and refuses sign-in. Keys of the user’s accounts keep working.',
  method: 'post',
  path: '/admin/users/{user_id}/ban',
  auth: 'admin',
  pathParameters: userPath,
  query: Type.Object(dryRunQuery),
  body: Type.Object({ reason: Reason }, { title: 'BanRequest' }),
  response: Type.Object(
    { ...userFields, was_already_banned: Type.Boolean(), sessions_ended: Count() },
    { title: 'BannedUser' },
  ),
  additionalResponses: [dryRuns.banUser],
  errors: ['not_found'],
  example: {
    ...ofUser,
    body: { reason: 'stolen mailbox' },
    response: {
      ...user,
      banned: true,
      ban_reason: 'stolen mailbox',
      was_already_banned: false,
      sessions_ended: 1,
    },
  },
});

export const unbanUser = defineOperation({
  operationId: 'unbanUser',
  tag: 'Admin',
  summary: 'Let a banned user sign in again',
  method: 'post',
  path: '/admin/users/{user_id}/unban',
  auth: 'admin',
  pathParameters: userPath,
  query: ReasonQuery,
  response: Type.Object({ ...userFields, was_banned: Type.Boolean() }, { title: 'UnbannedUser' }),
  errors: ['not_found'],
  example: { ...ofUser, response: { ...user, was_banned: true } },
});

export const revokeUserSessions = defineOperation({
  operationId: 'revokeUserSessions',
  tag: 'Admin',
  summary: 'End all sessions of a user',
  description: 'The user can sign in again.',
  method: 'post',
  path: '/admin/users/{user_id}/revoke-sessions',
  auth: 'admin',
  pathParameters: userPath,
  query: DryRunQuery,
  response: Type.Object(
    { id: Type.String(), email: Type.String(), sessions_ended: Count() },
    { title: 'EndedUserSessions' },
  ),
  additionalResponses: [dryRuns.endSessions],
  errors: ['not_found'],
  example: { ...ofUser, response: { id: user.id, email: user.email, sessions_ended: 2 } },
});
