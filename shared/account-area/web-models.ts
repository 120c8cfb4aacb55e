// decision 0057
import { Schema, type Connection, type Model } from 'mongoose';
import { noGrantReasons } from '../accounts/no-grant-reasons.ts';
import { auditActions, type AuditAction } from './audit-actions.ts';
import { mailLanguages, type MailLanguage } from './mail.ts';
import { deviceTypes, type DeviceDescription } from './user-agent.ts';

/** A person who signs in by mail. */
export interface WebUser {
  readonly _id: string;
  /** Normalised. */
  readonly email: string;
  /** An IANA name. */
  readonly timezone: string;
  /** For mails. */
  readonly language: MailLanguage;
  readonly createdAt: Date;
  readonly lastLoginAt: Date | null;
  readonly bannedAt: Date | null;
  readonly banReason: string | null;
  /** The id of the next account to create, so that two parallel requests create the same one. */
  readonly reservedAccountId: string;
}

/** One sign-in on one device, across all refreshes of its tokens. */
export interface WebSession extends DeviceDescription {
  readonly _id: string;
  readonly userId: string;
  readonly accessHash: string;
  readonly accessExpiresAt: Date;
  readonly refreshHash: string;
  readonly csrfHash: string;
  readonly rememberMe: boolean;
  readonly ipCreated: string;
  readonly ipLastUsed: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date;
  readonly expiresAt: Date;
}

/** An API account that a user manages. */
export interface WebLink {
  /** From 1 to 2^31 - 1. Shown to the user as the account's `id` (docs/web.md). */
  readonly _id: number;
  readonly userId: string;
  readonly accountId: string;
  readonly label: string;
  readonly createdAt: Date;
}

/** `started`: the action began, and its outcome has not been recorded. */
const auditOutcomes = ['started', 'done', 'failed'] as const;
export type AuditOutcome = (typeof auditOutcomes)[number];

/** `pending`: the mail that notifies the user has not been queued yet. */
const auditNotices = ['none', 'pending', 'queued'] as const;
export type AuditNotice = (typeof auditNotices)[number];

const auditGrants = ['granted', ...noGrantReasons] as const;
export type AuditGrant = (typeof auditGrants)[number];

/** An action on behalf of a user, and where it came from. */
export interface AuditEvent {
  /** Time-ordered. */
  readonly _id: string;
  readonly userId: string;
  readonly linkId: number | null;
  readonly accountId: string | null;
  /** The account's label at that time. */
  readonly label: string | null;
  readonly action: AuditAction;
  readonly at: Date;
  /** The IP address of the client; null if the action did not come from a client. */
  readonly address: string | null;
  readonly device: string | null;
  readonly sessionId: string | null;
  readonly requestId: string | null;
  readonly outcome: AuditOutcome;
  readonly notice: AuditNotice;
  /** Only of a finished `account-created`: whether the account got the sign-up grant, or why not. */
  readonly grant?: AuditGrant;
}

export interface WebModels {
  readonly users: Model<WebUser>;
  readonly sessions: Model<WebSession>;
  readonly links: Model<WebLink>;
  readonly audit: Model<AuditEvent>;
}

export const maxLinkId = 2 ** 31 - 1;
const auditRetentionDays = 400;

const text = { type: String, required: true } as const;
const optionalText = { type: String, default: null } as const;
const date = { type: Date, required: true } as const;
const optionalDate = { type: Date, default: null } as const;

/** Opening a model writes nothing; only `createIndexes` creates indexes. */
const options = {
  versionKey: false,
  autoIndex: false,
  autoCreate: false,
  bufferCommands: false,
  strict: 'throw',
  strictQuery: 'throw',
} as const;

const userSchema = new Schema<WebUser>(
  {
    _id: text,
    email: text,
    timezone: { ...text, default: 'UTC' },
    language: { ...text, enum: mailLanguages },
    createdAt: date,
    lastLoginAt: optionalDate,
    bannedAt: optionalDate,
    banReason: optionalText,
    reservedAccountId: text,
  },
  { ...options, collection: 'web_users' },
);
userSchema.index({ email: 1 }, { unique: true });
userSchema.index({ createdAt: 1, _id: 1 });

const sessionSchema = new Schema<WebSession>(
  {
    _id: text,
    userId: text,
    accessHash: text,
    accessExpiresAt: date,
    refreshHash: text,
    csrfHash: text,
    rememberMe: { type: Boolean, required: true },
    osName: text,
    browserName: text,
    deviceType: { ...text, enum: deviceTypes },
    ipCreated: text,
    ipLastUsed: text,
    createdAt: date,
    lastUsedAt: date,
    expiresAt: date,
  },
  { ...options, collection: 'web_sessions' },
);
sessionSchema.index({ userId: 1 });
sessionSchema.index({ expiresAt: 1 }, { expireAfterSeconds: 0 });

const linkSchema = new Schema<WebLink>(
  {
    _id: {
      type: Number,
      required: true,
      min: 1,
      max: maxLinkId,
      validate: { validator: Number.isInteger, message: '{VALUE} is not an integer' },
    },
    userId: text,
    accountId: text,
    label: text,
    createdAt: date,
  },
  { ...options, collection: 'web_links' },
);
linkSchema.index({ userId: 1, createdAt: 1 });
linkSchema.index({ accountId: 1 }, { unique: true });

const auditSchema = new Schema<AuditEvent>(
  {
    _id: text,
    userId: text,
    linkId: { type: Number, default: null },
    accountId: optionalText,
    label: optionalText,
    action: { ...text, enum: auditActions },
    at: date,
    address: optionalText,
    device: optionalText,
    sessionId: optionalText,
    requestId: optionalText,
    outcome: { ...text, enum: auditOutcomes },
    notice: { ...text, enum: auditNotices },
    grant: { type: String, enum: auditGrants },
  },
  { ...options, collection: 'web_audit' },
);
auditSchema.index({ userId: 1, at: -1 });
auditSchema.index({ notice: 1, at: 1 }, { partialFilterExpression: { notice: 'pending' } });
auditSchema.index({ at: 1 }, { expireAfterSeconds: auditRetentionDays * 86_400 });

export function createWebModels(connection: Connection): WebModels {
  return {
    users: connection.model<WebUser>('WebUser', userSchema),
    sessions: connection.model<WebSession>('WebSession', sessionSchema),
    links: connection.model<WebLink>('WebLink', linkSchema),
    audit: connection.model<AuditEvent>('AuditEvent', auditSchema),
  };
}
