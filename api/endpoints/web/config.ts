import type { WebConfig } from '../../../shared/contract/system.ts';
import { defaultAccountLabel } from '../../../shared/contract/web-accounts.ts';
import { codeLifetimeSeconds } from '../../../shared/contract/web-auth.ts';
import type { ApiContext } from '../../middleware/request-context.ts';
import { PreparedBody } from '../../present/prepared-body.ts';
import type { Services } from '../../services.ts';
import { sendPrepared } from '../send-prepared.ts';

/** It changes with the configuration alone, which takes a new start. */
const cacheControl = 'public, max-age=300';

const serviceName = 'Model Gateway';

export function getWebConfig(services: Services) {
  let body: PreparedBody | null = null;
  return async (context: ApiContext): Promise<void> => {
    body ??= PreparedBody.ofJson(describe(services));
    await sendPrepared(context, body, cacheControl);
  };
}

function describe({ config, publicUrl }: Services): WebConfig {
  return {
    name: serviceName,
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
