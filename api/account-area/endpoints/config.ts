import { operations } from '../../contract/operations.ts';
import type { WebConfig } from '../../../shared/contract/system.ts';
import { defaultAccountLabel } from '../../contract/web-accounts.ts';
import { codeLifetimeSeconds } from '../../contract/web-auth.ts';
import { serviceNameOf } from '../../../shared/platform/config/mail-sender.ts';
import { defineEndpoint } from '../../endpoint.ts';
import { beginInTurns } from '../../http/middleware/begin-in-turns.ts';
import { PreparedBody } from '../../http/responses/prepared-body.ts';
import type { Services } from '../../services.ts';
import { servePrepared } from '../../responses/send-prepared.ts';

/** Changes only with the configuration, which requires a restart. */
const cacheControl = 'public, max-age=300';

export const getWebConfig = defineEndpoint(operations.getWebConfig, [beginInTurns], (services) =>
  servePrepared(() => PreparedBody.ofJson(describe(services)), cacheControl),
);

function describe({ config, publicUrl }: Services): WebConfig {
  return {
    name: serviceNameOf(config.mailFrom),
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
