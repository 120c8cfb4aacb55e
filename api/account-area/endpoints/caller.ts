import type { MailOrigin } from '../../../shared/account-area/mail.ts';
import {
  describeUserAgent,
  formatDevice,
  type DeviceDescription,
} from '../../../shared/account-area/user-agent.ts';
import type { ApiContext } from '../../http/request/context.ts';

export function deviceOf(context: ApiContext): DeviceDescription {
  return describeUserAgent(context.get('user-agent'));
}

/** Where a call comes from, for mails and the audit log. */
export function originOf(context: ApiContext): Required<MailOrigin> {
  return { address: context.ip, device: formatDevice(deviceOf(context)) };
}
