import { serviceNameOf } from '../../shared/platform/config/mail-sender.ts';
import type { WebConfig } from '../../shared/contract/system.ts';
import { defaultAccountLabel } from '../contract/web-accounts.ts';
import { codeLifetimeSeconds } from '../contract/web-auth.ts';
import type { Services } from '../services.ts';

/** What pages know of the configuration. Changes only with a restart. */
export function describeWebConfig({ config, publicUrl, brand }: Services): WebConfig {
  const { pages, signup } = config;
  return {
    name: pages.brandName ?? serviceNameOf(config.mailFrom),
    logo_url: brand.logo,
    api_base_url: `${publicUrl}/v1`,
    support_email: config.supportEmail,
    terms_url: pages.termsUrl,
    privacy_url: pages.privacyUrl,
    footer_text: pages.footerText,
    signup_enabled: signup.isOpen,
    captcha_required: config.captchaMode === 'on',
    captcha_mode: config.captchaMode,
    default_account_label: defaultAccountLabel,
    keys_shown_again: config.revealsKeys,
    currency: 'RUB',
    code_ttl_seconds: codeLifetimeSeconds,
  };
}
