import { useMessages } from '../../lib/language.tsx';
import { AppearanceCard } from './appearance-card.tsx';
import type en from './messages.en.ts';
import { ProfileCard } from './profile-card.tsx';
import { SessionsCard } from './sessions-card.tsx';
import './settings.css';

export default function SettingsPage() {
  const t = useMessages<typeof en>();
  return (
    <div class="page settings">
      <h1>{t('title')}</h1>
      <div class="settings-pair">
        <ProfileCard />
        <AppearanceCard />
      </div>
      <SessionsCard />
    </div>
  );
}
