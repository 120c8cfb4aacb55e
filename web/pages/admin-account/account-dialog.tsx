import type { Account } from './account.ts';
import { BanDialog, UnbanDialog } from './ban-dialogs.tsx';
import { CreditDialog } from './credit-dialog.tsx';
import type { DialogName } from './dialog-names.ts';
import { RotateDialog } from './rotate-dialog.tsx';
import { SettingsDialog } from './settings-dialog.tsx';
import { UnlinkDialog } from './unlink-dialog.tsx';
import { WebhookSecretDialog } from './webhook-secret-dialog.tsx';

const dialogs = {
  credit: CreditDialog,
  rotate: RotateDialog,
  ban: BanDialog,
  unban: UnbanDialog,
  unlink: UnlinkDialog,
  webhook: WebhookSecretDialog,
} as const;

/** What is done with an account. */
export function AccountDialog({
  name,
  ...props
}: {
  readonly name: DialogName;
  readonly account: Account;
  readonly onClose: () => void;
}) {
  if (name === 'owner' || name === 'limits' || name === 'money' || name === 'access')
    return <SettingsDialog group={name} {...props} />;
  const Named = dialogs[name];
  return <Named {...props} />;
}
