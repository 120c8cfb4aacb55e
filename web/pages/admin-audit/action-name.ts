import type { Translate } from '../../lib/messages.ts';
import type en from './messages.en.ts';

type Name = Extract<keyof typeof en, `action_${string}`>;

/** Says what was done; one that this page does not know is named as the API does. */
export function nameAction(action: string, t: Translate<typeof en>): string {
  const key = `action_${action}` as Name;
  const name = t(key);
  return name === key ? action : name;
}
