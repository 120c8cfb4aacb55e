import { randomUUID } from 'node:crypto';
import { S3Error } from './errors.ts';
import { findChild, parseXml, renderDocument, renderElement, renderText } from './xml.ts';
import type { XmlElement } from './xml.ts';

/** Objects with this prefix expire this number of whole days after they were written. */
export interface LifecycleRule {
  id: string;
  prefix: string;
  days: number;
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
  let earliest: Expiry | undefined;
  for (const rule of rules) {
    if (!rule.enabled || !key.startsWith(rule.prefix)) continue;
    const expiresAtMs = Math.min(lastModifiedMs + rule.days * dayMs, maxDateMs);
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
        renderElement('Expiration', renderText('Days', rule.days)),
      ),
    ),
  );
}

function parseRule(rule: XmlElement): LifecycleRule {
  requireOnly(rule, ['ID', 'Prefix', 'Filter', 'Status', 'Expiration']);
  const filter = findChild(rule, 'Filter');
  if (filter !== undefined) requireOnly(filter, ['Prefix']);
  const expiration = findChild(rule, 'Expiration');
  if (expiration === undefined) throw new S3Error('MalformedXML');
  requireOnly(expiration, ['Days']);
  const legacyPrefix = findChild(rule, 'Prefix');
  // S3 requires exactly one of the two. A filter may be empty and then means the whole bucket.
  if ((filter === undefined) === (legacyPrefix === undefined)) throw new S3Error('MalformedXML');

  const status = findChild(rule, 'Status')?.text.trim();
  if (status !== 'Enabled' && status !== 'Disabled') throw new S3Error('MalformedXML');
  const days = findChild(expiration, 'Days')?.text.trim() ?? '';
  if (!/^[+-]?\d{1,9}$/.test(days)) throw new S3Error('MalformedXML');
  if (Number(days) < 1) {
    throw new S3Error('InvalidArgument', {
      message: "'Days' for Expiration action must be a positive integer",
    });
  }
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
    days: Number(days),
    enabled: status === 'Enabled',
  };
}

function requireOnly(element: XmlElement, names: readonly string[]): void {
  for (const child of element.children) {
    if (!names.includes(child.name)) {
      throw new S3Error('NotImplemented', {
        message: `${child.name} in a lifecycle rule is not implemented here; rules can only expire objects with a prefix after days.`,
      });
    }
    if (element.children.filter((other) => other.name === child.name).length > 1) {
      throw new S3Error('MalformedXML');
    }
  }
}
