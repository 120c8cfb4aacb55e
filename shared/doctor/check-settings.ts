import type { Config } from '../platform/config/config.ts';
import { isLoopbackHost } from '../platform/runtime/address-class.ts';
import { fullVersion } from '../platform/runtime/product-version.ts';
import { ok, problem, warning, type Finding } from './finding.ts';
import { isOlder } from './is-older.ts';

const minNode = '20.19';

export function checkVersion(nodeVersion: string): Finding {
  const found = `model-gateway ${fullVersion}, Node ${nodeVersion}`;
  return isOlder(nodeVersion, minNode)
    ? problem('version', found, `Install Node ${minNode} or later.`)
    : ok('version', found);
}

/** Checks what no reading of a single variable can: how they go together. */
export function checkSettings(config: Config, env: NodeJS.ProcessEnv): Finding[] {
  const { production, publicUrl, trustProxy, alerts } = config;
  const findings: Finding[] = [];
  const add = (finding: Finding): void => {
    findings.push(finding);
  };
  const isPublic = publicUrl !== null && !isLoopbackHost(new URL(publicUrl).hostname);
  if (production && env['DEMO_ACCOUNT'] === 'on')
    add(
      warning(
        'settings',
        'DEMO_ACCOUNT is on, in production',
        'Unset it, unless the demo account is meant to be used.',
      ),
    );
  if (production && publicUrl === null)
    add(
      warning(
        'settings',
        'PUBLIC_URL is not set: links to images and jobs have the address that the api listens on',
        'Set it to the address that callers use, such as https://gateway.example.com.',
      ),
    );
  if (isPublic && publicUrl.startsWith('http:'))
    add(
      warning(
        'settings',
        `PUBLIC_URL ${publicUrl} is not https: API keys are sent in clear text`,
        'Put a balancer with a certificate in front of the api.',
      ),
    );
  if (isPublic && publicUrl.startsWith('https:') && !trustProxy)
    add(
      warning(
        'settings',
        'PUBLIC_URL is https, but TRUST_PROXY is off: all callers seem to have the address of the balancer',
        'Set TRUST_PROXY=on, if the balancer sets X-Forwarded-For.',
      ),
    );
  if (production && alerts.email === null && alerts.webhookUrl === null)
    add(
      warning(
        'settings',
        'neither ALERT_EMAIL nor ALERT_WEBHOOK_URL is set: nobody is told when something fails',
        'Set one of them, or watch GET /v1/health?strict or the metrics.',
      ),
    );
  return findings.length > 0 ? findings : [ok('settings', 'no contradictions')];
}
