import { invalidField } from './errors.ts';

export const onDisconnectHeader = 'X-On-Disconnect';
export const onDisconnectValues = ['cancel', 'continue'] as const;

/** How long a stream that continues without its reader can be resumed after its end. */
export const resumableMinutes = 10;

/**
 * Returns whether a stream continues without its reader, and can be resumed.
 * @throws AppError `validation_failed`
 */
export function readOnDisconnect(header: string | undefined): boolean {
  const value = header?.trim().toLowerCase() ?? 'cancel';
  if (value === 'cancel' || value === 'continue') return value === 'continue';
  throw invalidField(['header', onDisconnectHeader], `must be one of: ${onDisconnectValues.join(', ')}`);
}
