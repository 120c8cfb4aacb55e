import type { WebConfig } from '../../../shared/contract/system.ts';
import { defaultAccountLabel } from '../../../shared/contract/web-accounts.ts';
import { codeLifetimeSeconds } from '../../../shared/contract/web-auth.ts';
import { nameService } from '../../../shared/runtime/mail-sender.ts';
import { PreparedBody } from '../../present/prepared-body.ts';
import type { Services } from '../../services.ts';
import { servePrepared } from '../send-prepared.ts';

/** It changes with the configuration alone, which takes a new start. */
const cacheControl = 'public, max-age=300';

export function getWebConfig(services: Services) {
  return servePrepared(() => PreparedBody.ofJson(describe(services)), cacheControl);
}

function describe({ config, publicUrl }: Services): WebConfig {
  return {
    name: nameService(config.mailFrom),
    api_base_url: `${publicUrl}/v1`,
    support_email: config.supportEmail,
    signup_enabled: config.signup.isOpen,
    captcha_required: config.captchaMode === 'on',
    captcha_mode: config.captchaMode,
    default_account_label: defaultAccountLabel,
    currency: 'RUB',
    code_ttl_seconds: codeLifetimeSeconds,
  };
}
