import { useSession } from '../../lib/session.ts';
import { lazy } from '../../lib/lazy.tsx';
import { Skeleton } from '../../ui/states.tsx';
import './home.css';

const loading = () => (
  <div class="page">
    <Skeleton lines={8} height="2.5rem" />
  </div>
);
const Overview = lazy(async () => (await import('./overview.tsx')).Overview, loading);
const Welcome = lazy(async () => (await import('./welcome.tsx')).Welcome, loading);

export default function HomePage() {
  const { status } = useSession();
  return status === 'none' ? <Welcome /> : <Overview />;
}
