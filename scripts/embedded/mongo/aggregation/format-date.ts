import { MongoError } from '../errors.ts';

const parts: Record<string, (date: Date) => string> = {
  '%Y': (date) => String(date.getUTCFullYear()).padStart(4, '0'),
  '%m': (date) => twoDigits(date.getUTCMonth() + 1),
  '%d': (date) => twoDigits(date.getUTCDate()),
  '%H': (date) => twoDigits(date.getUTCHours()),
  '%M': (date) => twoDigits(date.getUTCMinutes()),
  '%S': (date) => twoDigits(date.getUTCSeconds()),
  '%L': (date) => String(date.getUTCMilliseconds()).padStart(3, '0'),
  '%%': () => '%',
};

const twoDigits = (value: number) => String(value).padStart(2, '0');

/** A date in UTC by the conversions of `$dateToString` that are known here; another one is an error. */
export function formatDate(date: Date, format: string): string {
  return format.replace(/%.?/g, (conversion) => {
    const part = parts[conversion];
    if (part === undefined) {
      throw new MongoError(
        'Location18536',
        `Invalid format character '${conversion}' in $dateToString: not supported by the embedded MongoDB; set MONGODB_URL`,
      );
    }
    return part(date);
  });
}
