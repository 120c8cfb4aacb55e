import { randomUUID } from 'node:crypto';
import { S3Error } from './errors.ts';
import { findChild, parseXml, renderDocument, renderElement, renderText } from './xml.ts';
import type { XmlElement } from './xml.ts';

/** Applies to keys with this prefix. A rule has at least one of the two numbers of days. */
export interface LifecycleRule {
  id: string;
  prefix: string;
  /** Objects expire this number of whole days after they were written. */
  days?: number | undefined;
  /** Unfinished multipart uploads are aborted this number of whole days after they were initiated. */
  abortUploadDays?: number | undefined;
  enabled: boolean;
}

export interface Expiry {
  expiresAtMs: number;
  ruleId: string;
}

const dayMs = 86_400_000;
// The latest time that a Date can represent. A rule of a hundred million days would exceed it.
const maxDateMs = 8_640_000_000_000_000;
const maxRules = 1000;
const maxIdLength = 255;

/** Returns the first expiry of an object under any of the rules. */
export function findExpiry(
  rules: readonly LifecycleRule[],
  key: string,
  lastModifiedMs: number,
): Expiry | undefined {
  return findEarliest(rules, key, lastModifiedMs, ({ days }) => days);
}

/** Returns when an unfinished multipart upload is aborted, by the first of the rules. */
export function findUploadExpiry(
  rules: readonly LifecycleRule[],
  key: string,
  initiatedAtMs: number,
): Expiry | undefined {
  return findEarliest(rules, key, initiatedAtMs, ({ abortUploadDays }) => abortUploadDays);
}

function findEarliest(
  rules: readonly LifecycleRule[],
  key: string,
  startedAtMs: number,
  getDays: (rule: LifecycleRule) => number | undefined,
): Expiry | undefined {
  let earliest: Expiry | undefined;
  for (const rule of rules) {
    const days = getDays(rule);
    if (days === undefined || !rule.enabled || !key.startsWith(rule.prefix)) continue;
    const expiresAtMs = Math.min(startedAtMs + days * dayMs, maxDateMs);
    if (earliest === undefined || expiresAtMs < earliest.expiresAtMs) {
      earliest = { expiresAtMs, ruleId: rule.id };
    }
  }
  return earliest;
}

/** Renders the x-amz-expiration header. */
export function renderExpiration(expiry: Expiry): string {
  const date = new Date(expiry.expiresAtMs).toUTCString();
  return `expiry-date="${date}", rule-id="${encodeURIComponent(expiry.ruleId)}"`;
}

/**
 * Parses a LifecycleConfiguration. Rejects what this server cannot apply (transitions, tags, dates, versions), because
 * a rule that is stored but not applied would be misleading.
 */
export function parseLifecycle(xml: Uint8Array): LifecycleRule[] {
  const root = parseXml(xml);
  if (root.name !== 'LifecycleConfiguration') throw new S3Error('MalformedXML');
  if (root.children.some((child) => child.name !== 'Rule')) throw new S3Error('MalformedXML');
  if (root.children.length === 0 || root.children.length > maxRules) throw new S3Error('MalformedXML');
  const rules = root.children.map(parseRule);
  if (new Set(rules.map((rule) => rule.id)).size !== rules.length) {
    throw new S3Error('InvalidArgument', { message: 'Rule ID must be unique.' });
  }
  return rules;
}

export function renderLifecycle(rules: readonly LifecycleRule[]): string {
  return renderDocument(
    'LifecycleConfiguration',
    ...rules.map((rule) =>
      renderElement(
        'Rule',
        renderText('ID', rule.id),
        renderElement('Filter', renderText('Prefix', rule.prefix)),
        renderText('Status', rule.enabled ? 'Enabled' : 'Disabled'),
        rule.days === undefined ? '' : renderElement('Expiration', renderText('Days', rule.days)),
        rule.abortUploadDays === undefined
          ? ''
          : renderElement(
              'AbortIncompleteMultipartUpload',
              renderText('DaysAfterInitiation', rule.abortUploadDays),
            ),
      ),
    ),
  );
}

function parseRule(rule: XmlElement): LifecycleRule {
  requireOnly(rule, ['ID', 'Prefix', 'Filter', 'Status', 'Expiration', 'AbortIncompleteMultipartUpload']);
  const filter = findChild(rule, 'Filter');
  if (filter !== undefined) requireOnly(filter, ['Prefix']);
  const days = readDays(rule, 'Expiration', 'Days');
  const abortUploadDays = readDays(rule, 'AbortIncompleteMultipartUpload', 'DaysAfterInitiation');
  if (days === undefined && abortUploadDays === undefined) throw new S3Error('MalformedXML');
  const legacyPrefix = findChild(rule, 'Prefix');
  // S3 requires exactly one of the two. A filter may be empty and then means the whole bucket.
  if ((filter === undefined) === (legacyPrefix === undefined)) throw new S3Error('MalformedXML');

  const status = findChild(rule, 'Status')?.text.trim();
  if (status !== 'Enabled' && status !== 'Disabled') throw new S3Error('MalformedXML');
  const id = findChild(rule, 'ID')?.text ?? '';
  if (id.length > maxIdLength) {
    throw new S3Error('InvalidArgument', {
      message: `ID length should not exceed allowed limit of ${String(maxIdLength)}`,
    });
  }
  const prefix = legacyPrefix ?? (filter === undefined ? undefined : findChild(filter, 'Prefix'));
  return {
    id: id === '' ? randomUUID() : id,
    prefix: prefix?.text ?? '',
    days,
    abortUploadDays,
    enabled: status === 'Enabled',
  };
}

/** Reads the number of days of one of a rule's actions. Returns undefined if the rule does not have the action. */
function readDays(rule: XmlElement, actionName: string, daysName: string): number | undefined {
  const action = findChild(rule, actionName);
  if (action === undefined) return undefined;
  requireOnly(action, [daysName]);
  const days = findChild(action, daysName)?.text.trim() ?? '';
  if (!/^[+-]?\d{1,9}$/.test(days)) throw new S3Error('MalformedXML');
  if (Number(days) < 1) {
    throw new S3Error('InvalidArgument', {
      message: `'${daysName}' for ${actionName} action must be a positive integer`,
    });
  }
  return Number(days);
}

function requireOnly(element: XmlElement, names: readonly string[]): void {
  for (const child of element.children) {
    if (!names.includes(child.name)) {
      throw new S3Error('NotImplemented', {
        message: `${child.name} in a lifecycle rule is not implemented here; rules can only expire objects, and abort multipart uploads, with a prefix after days.`,
      });
    }
    if (element.children.filter((other) => other.name === child.name).length > 1) {
      throw new S3Error('MalformedXML');
    }
  }
}
