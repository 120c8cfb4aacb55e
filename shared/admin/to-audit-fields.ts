import { toRubNumber } from '../encoding/money.ts';
import { isRecord } from '../encoding/json-record.ts';

const nano = 'Nano';

/** Names a field as the API does: `requestsPerMinute` is `requests_per_minute`. */
const toSnakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * Converts fields of a document to those of the audit log, which are JSON: an amount such as `amountNano` becomes `amount`
 * in roubles.
 */
export const toAuditFields = (fields: object): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) =>
      typeof value === 'bigint' && name.endsWith(nano)
        ? [toSnakeCase(name.slice(0, -nano.length)), toRubNumber(value)]
        : [toSnakeCase(name), toJson(value)],
    ),
  );

function toJson(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return value.map(toJson);
  return isRecord(value) ? toAuditFields(value) : value;
}
